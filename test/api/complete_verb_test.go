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
		"POOL-forged": "error: node \"POOL-forged\" names NodeMaintenance POOL-planned as its holder, but that does not select the node. Complete the maintenance with\n" +
			"  kubectl ebbtide complete nodemaintenance/POOL-planned --kubeconfig CONFIG\n",
		"POOL-evil": "error: no maintenance holds node \"POOL-evil\". If it is cordoned, uncordon it with\n  kubectl uncordon POOL-evil --kubeconfig CONFIG\n",
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

// Who gives back one node of several changes nothing about the others, and nothing by saying
// it again.
func TestCompleteGivesBackOneNodeOfSeveral(t *testing.T) {
	d := newDesk(t)
	manager := d.Mighty(t, cluster.Account.User())
	pool := d.Pool() + "-pool"
	terms := ""
	for _, node := range []string{"x", "y", "z"} {
		name := d.Pool() + "-" + node
		terms += "{matchFields: [{key: metadata.name, operator: In, values: [" + name + "]}]}, "
		d.createBy(manager, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["` + pool + `"]}`}},
			Spec:       corev1.NodeSpec{Unschedulable: true},
		})
	}
	d.create(object(t, maintenance(pool, "nodeSelector: {nodeSelectorTerms: ["+terms+"]}\nstage: Drain")))

	goesOn := printed{Out: "NodeMaintenance POOL-pool continues without POOL-x\n"}
	for _, one := range []struct {
		args []string
		want printed
	}{
		{[]string{"POOL-x", "--dry-run=server"}, printed{Out: "NodeMaintenance POOL-pool continues without POOL-x (server dry run)\n"}},
		{[]string{"POOL-x", "--wait=false"}, goesOn},
		{[]string{"POOL-x", "--wait=false"}, goesOn},
		{[]string{"POOL-y", "--wait=false", "-o", "name"}, printed{Out: "nodemaintenance.ebbtide.dev/POOL-pool\n"}},
		// Nobody acts on it here.
		{[]string{"POOL-y", "--timeout=1s"}, printed{Code: 2, ErrOut: "Timed out after 1s: NodeMaintenance POOL-pool has not released POOL-y yet. See why with\n" +
			"  kubectl describe nodemaintenance POOL-pool --kubeconfig CONFIG\n"}},
	} {
		if diff := cmp.Diff(one.want, d.run(append([]string{"complete"}, one.args...)...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", one.args, diff)
		}
	}
	m := &v1alpha1.NodeMaintenance{}
	if err := d.Client.Get(t.Context(), client.ObjectKey{Name: pool}, m); err != nil || m.Spec.Stage != v1alpha1.StageDrain {
		t.Errorf("it is in stage %s (%v), want Drain", m.Spec.Stage, err)
	}
	if diff := cmp.Diff([]v1alpha1.NodeReference{{Name: d.Pool() + "-x"}, {Name: d.Pool() + "-y"}}, m.Spec.CompletedNodes); diff != "" {
		t.Errorf("completedNodes (-want +got):\n%s", diff)
	}
	d.run("complete", "POOL-z", "--wait=false")
	if err := d.Client.Get(t.Context(), client.ObjectKey{Name: pool}, m); err != nil || m.Spec.Stage != v1alpha1.StageComplete {
		t.Errorf("it is in stage %s (%v) without nodes, want Complete", m.Spec.Stage, err)
	}
}
