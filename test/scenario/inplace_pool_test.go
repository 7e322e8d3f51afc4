package scenario

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// One NodeMaintenance reboots a pool. Whoever reboots goes by what the nodes announce and
// does nothing else: a node that is back gives its locks to the next, which is the one
// that has waited longest. Never are two replicas of an application down.
func TestOneMaintenanceRebootsAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	w.replicated(myApp, yourApp)
	outages := w.watchOutages(myApp, yourApp)
	w.maintainInPlace("upgrade", minutes, nodes...)

	rebooted := map[string]bool{}
	for range nodes {
		node := w.awaitAnnounced(nodes)
		if rebooted[node] {
			t.Fatalf("node %s is to be rebooted twice", node)
		}
		rebooted[node] = true
		w.assertQueue(nodes, node, len(nodes)-len(rebooted))
		w.rebootOnly(node)
		w.awaitState("upgrade", node, v1alpha1.NodeStateReturned)
	}
	w.awaitDrained("upgrade")
	w.awaitNoEvacuations()
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(nodes...)
	for _, node := range nodes {
		w.awaitNode(node, "free again", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	}
	outages.assertOneAtATime()
}

// awaitAnnounced waits until a node announces that it may be rebooted, and wants no
// other one to do so.
func (w *world) awaitAnnounced(nodes []string) string {
	w.t.Helper()
	var drained []string
	w.eventually("a node to be Drained", func() (bool, any) {
		drained = nil
		for _, name := range nodes {
			n := &corev1.Node{}
			w.get(n, name)
			if isDrained(n) {
				drained = append(drained, name)
			}
		}
		return len(drained) > 0, drained
	})
	if len(drained) != 1 {
		w.t.Fatalf("nodes %v may be rebooted at the same time", drained)
	}
	return drained[0]
}

// assertQueue wants as many nodes to wait as are left, and each to know for whom.
func (w *world) assertQueue(nodes []string, first string, waiting int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d nodes to wait for node %s", waiting, first), func() (bool, any) {
		var words []string
		waits := 0
		for _, name := range nodes {
			record := &v1alpha1.DrainRecord{}
			w.get(record, name)
			told := apimeta.FindStatusCondition(record.Status.Conditions, v1alpha1.ConditionLocked)
			if told != nil {
				words = append(words, name+": "+told.Reason+": "+told.Message)
			}
			if told != nil && told.Reason == v1alpha1.ReasonWaitingForBudget && contains(told.Message, first) {
				waits++
			}
		}
		return waits == waiting, words
	})
}

// rebootOnly takes a node down and up again, and tells nobody.
func (w *world) rebootOnly(node string) {
	w.t.Helper()
	w.goDown(node)
	w.awaitAllowed(myApp, 0)
	w.boot(node)
	w.recover(node)
}

// awaitState waits until a node of a maintenance is so far.
func (w *world) awaitState(maintenance, node string, state v1alpha1.NodeState) {
	w.t.Helper()
	w.awaitMaintenance(maintenance, fmt.Sprintf("%s: %s", node, state), func(m *v1alpha1.NodeMaintenance) bool {
		status := nodeStatus(m, node)
		return status != nil && status.State == state
	})
}
