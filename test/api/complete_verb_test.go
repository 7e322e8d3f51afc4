package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Whoever may annotate a node has an administrator who gives it back end no maintenance of
// other nodes, which would be final, and writes no command into the terminal.
func TestANodeCannotSayWhatIsEnded(t *testing.T) {
	d := newDesk(t)
	manager := d.Mighty(t, cluster.Account.User())
	d.create(object(t, maintenance(d.Pool()+"-planned", "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: ["+d.Pool()+"-a]}]}]}")))
	d.createBy(manager, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.Pool() + "-forged", Annotations: map[string]string{
		v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["` + d.Pool() + `-planned"]}`,
	}}})
	d.createBy(manager, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.Pool() + "-evil", Annotations: map[string]string{
		v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["\u001b[2Jplanned"]}`,
	}}})

	for node, want := range map[string]string{
		"POOL-forged": "error: node POOL-forged says that NodeMaintenance POOL-planned holds it, which does not select the node. If you mean that one, name it:\n" +
			"  kubectl ebbtide complete nodemaintenance/POOL-planned --kubeconfig CONFIG\n",
		"POOL-evil": "error: no maintenance holds node POOL-evil; if somebody has cordoned it, give it back with\n  kubectl uncordon POOL-evil --kubeconfig CONFIG\n",
	} {
		if diff := cmp.Diff(printed{Code: 1, ErrOut: want}, d.run("complete", node)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", node, diff)
		}
	}
	m := &v1alpha1.NodeMaintenance{}
	if err := d.Client.Get(t.Context(), client.ObjectKey{Name: d.Pool() + "-planned"}, m); err != nil || m.Spec.Stage != v1alpha1.StageIdle {
		t.Errorf("it is in stage %s (%v), want Idle", m.Spec.Stage, err)
	}
}
