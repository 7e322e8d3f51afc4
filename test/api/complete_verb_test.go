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

// holds creates a cordoned node that names a NodeMaintenance as its holder.
func (d *desk) holds(manager client.Client, node, maintenance string) {
	d.t.Helper()
	keep(d.t, manager, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: d.Pool() + "-" + node, Annotations: map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["` + maintenance + `"]}`}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	})
}

// A forged annotation of a node has an administrator who gives the node back end no maintenance of
// other nodes, which would be final, and writes no command into the terminal.
func TestANodeCannotSayWhatIsEnded(t *testing.T) {
	d := newDesk(t)
	manager := d.Mighty(t, cluster.Account.User())
	d.maintain("planned", "stage: Idle", "a")
	d.holds(manager, "forged", d.Pool()+"-planned")
	d.holds(manager, "evil", `\u001b[2Jplanned`)
	d.transcript("complete-forged.txt", "complete POOL-forged", "complete POOL-evil")
	d.wantPlanned(1)
}

// Completing one node of several changes nothing about the others, and nothing the second time.
func TestCompleteGivesBackOneNodeOfSeveral(t *testing.T) {
	d := newDesk(t)
	manager := d.Mighty(t, cluster.Account.User())
	for _, node := range []string{"x", "y", "z"} {
		d.holds(manager, node, d.Pool()+"-pool")
	}
	d.maintain("pool", "stage: Drain", "x", "y", "z")
	d.transcript("complete-node.txt", "complete POOL-x --dry-run=server", "complete POOL-x --wait=false", "complete POOL-x --wait=false",
		"complete POOL-y --wait=false -o name", "complete POOL-y --timeout=1s")
	m := d.maintenances()[0]
	if diff := cmp.Diff([]v1alpha1.NodeReference{{Name: d.Pool() + "-x"}, {Name: d.Pool() + "-y"}}, m.Spec.CompletedNodes); diff != "" || m.Spec.Stage != v1alpha1.StageDrain {
		t.Errorf("in stage %s, completedNodes (-want +got):\n%s", m.Spec.Stage, diff)
	}
	d.run("complete", "POOL-z", "--wait=false")
	if m := d.maintenances()[0]; m.Spec.Stage != v1alpha1.StageComplete {
		t.Errorf("it is in stage %s without nodes, want Complete", m.Spec.Stage)
	}
}
