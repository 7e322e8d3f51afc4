package scenario

import (
	"fmt"
	"os"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

const (
	handover  = "handover.example.com"
	successor = handover + "/successor"
)

// database is the application of examples/leader on three nodes, and its evacuator.
type database struct {
	*world
	evacuator *sandbox.Program
	// leader is the pod that leads at first, and node where it runs.
	leader *corev1.Pod
	node   string
}

// database starts both as the README of the example does, the evacuator under
// the permissions that it asks for.
func (w *world) database() *database {
	w.t.Helper()
	w.nodes("one", "two", "three")
	for _, file := range []string{"database.yaml", "evacuator.yaml"} {
		text, err := os.ReadFile("../../examples/leader/" + file)
		w.must("read the example", err)
		w.cluster.Apply(w.t, w.ns, strings.ReplaceAll(string(text), "namespace: default", "namespace: "+w.ns))
	}
	w.awaitPods("3 ready pods", readyPods(3))
	d := &database{world: w, leader: &corev1.Pod{}}
	w.get(d.leader, "db-0")
	d.node = d.leader.Spec.NodeName
	d.start()
	return d
}

func (d *database) start() {
	d.t.Helper()
	kubeconfig := d.cluster.ServiceAccountKubeconfig(d.t, d.ns, "leader-evacuator")
	d.evacuator = d.cluster.StartProgram(d.t, "examples/leader", "--kubeconfig="+kubeconfig, "--namespace="+d.ns)
}

// awaitEvacuation waits for a state of the evacuation of the pod that led at first.
func (d *database) awaitEvacuation(what string, reached func(*v1alpha1.EvacuationStatus) bool) {
	d.t.Helper()
	await(d.world, what, &v1alpha1.Evacuation{}, evacuation.Name(d.leader), func(e *v1alpha1.Evacuation) bool {
		return reached(&e.Status)
	})
}

// handsOver drains the leader's node until another pod has been asked to lead.
func (d *database) handsOver() {
	d.t.Helper()
	d.maintain("upgrade", v1alpha1.StageDrain, []string{d.node})
	d.awaitAsked()
}

// awaitAsked waits until another pod has been asked to lead.
func (d *database) awaitAsked() {
	d.t.Helper()
	d.awaitEvacuation("progress, ETA and the point of no return", func(s *v1alpha1.EvacuationStatus) bool {
		return s.ActiveEvacuatorClass == handover && s.Message == "Pod db-1 is asked to lead." &&
			s.EvacuationProgressTimestamp != nil && s.ExpectedEvacuationFinishTime.After(s.EvacuationProgressTimestamp.Time) &&
			s.EvacuationCancellationPolicy == v1alpha1.CancellationForbid
	})
	await(d.world, "db-1 is asked", &coordinationv1.Lease{}, "db", func(l *coordinationv1.Lease) bool {
		return l.Annotations[successor] == "db-1" && *l.Spec.HolderIdentity == "db-0"
	})
}

// takesOver is what db-1 does when it finds its name on the Lease. Until then
// the leader stays.
func (d *database) takesOver() {
	d.t.Helper()
	found := &corev1.Pod{}
	d.get(found, d.leader.Name)
	if found.UID != d.leader.UID || found.DeletionTimestamp != nil {
		d.t.Error("the leader leaves before another pod leads")
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = d.ns, "db"
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}},"spec":{"holderIdentity":"db-1"}}`, successor)
	d.must("take the Lease", d.client.Patch(d.ctx, lease, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// awaitMoved waits until the leader's pod is gone from its node.
func (d *database) awaitMoved(maintenance string) {
	d.t.Helper()
	d.awaitDrained(maintenance)
	d.awaitNoEvacuations()
	d.awaitPod(d.leader.Name, "created again, elsewhere", func(p *corev1.Pod) bool {
		return p.UID != d.leader.UID && p.Spec.NodeName != d.node
	})
}

// A stateful application hands over leadership before its leader is evicted.
func TestLeadershipMovesBeforeThePod(t *testing.T) {
	t.Parallel()
	d := newWorld(t).database()

	d.handsOver()

	d.awaitBlocker("upgrade", d.node, v1alpha1.BlockerEvacuatorRunning, "Evacuator "+handover+" moves the pod")
	d.takesOver()
	d.awaitMoved("upgrade")
}

// The evacuator is killed in the middle. What it needs to go on is in the API.
func TestLongAnEvacuatorGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	d := newWorld(t).database()
	d.handsOver()

	d.evacuator.Kill()
	d.takesOver()
	d.start()

	d.awaitMoved("upgrade")
}
