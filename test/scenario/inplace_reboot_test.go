package scenario

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The wedge of skip-drain-on-upgrade with nodes that come back: of two drains one
// gets both applications. The other says on whom it waits, and has them when the
// pods of the first node are ready again, not before. Never are two replicas down.
func TestLongTwoDrainsInPlaceEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	w.replicated(myApp, yourApp)
	w.pods(nodes[0], pod{name: "ordinary-one"})
	w.pods(nodes[1], pod{name: "ordinary-two"})
	outages, locks := w.watchOutages(myApp, yourApp), w.watchLocks()

	w.maintainInPlace("upgrade-one", minutes, nodes[0])
	w.maintainInPlace("upgrade-two", minutes, nodes[1])

	first, second := w.awaitFirst(rolling{"upgrade-one", nodes[0]}, rolling{"upgrade-two", nodes[1]})
	w.awaitGone("ordinary-one")
	w.awaitGone("ordinary-two")
	w.awaitLock(w.holder(first.maintenance, first.node), myApp, yourApp)
	w.awaitRecord(first.node, "True", v1alpha1.ReasonHeld)
	w.awaitRecord(second.node, "False", v1alpha1.ReasonWaitingForBudget)
	for _, app := range []string{myApp, yourApp} {
		words := "PodDisruptionBudget " + w.ns + "/" + app + " is locked by " + w.holder(first.maintenance, first.node)
		w.awaitWaits(second.maintenance, second.node, words)
		w.awaitAnswer(w.replica(app, nodes[2]), words)
	}
	w.rebootInPlace(first)
	w.awaitDrained(second.maintenance)
	w.awaitLock(w.holder(second.maintenance, second.node), myApp, yourApp)
	w.rebootInPlace(second)

	w.awaitNothingLocked(nodes...)
	outages.assertOneAtATime()
	one, two := w.holder(first.maintenance, first.node), w.holder(second.maintenance, second.node)
	locks.assertHolders(map[string][]string{myApp: {one, "", two, ""}, yourApp: {one, "", two, ""}})
}

// rolling is a node that is upgraded in place.
type rolling struct{ maintenance, node string }

// awaitFirst waits until one of two maintenances is drained, and wants the other
// not to be.
func (w *world) awaitFirst(one, two rolling) (first, second rolling) {
	w.t.Helper()
	drained := func(r rolling) bool {
		m := &v1alpha1.NodeMaintenance{}
		w.get(m, w.name(r.maintenance))
		return apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	}
	w.eventually("one of two maintenances to be drained", func() (bool, any) {
		first, second = one, two
		if drained(two) {
			first, second = two, one
		}
		return drained(first), first
	})
	w.assertNotDrained(second.maintenance)
	return first, second
}

// rebootInPlace takes a drained node down and up again and completes its
// maintenance. It wants the locks to last until the node's pods are ready.
func (w *world) rebootInPlace(r rolling) {
	w.t.Helper()
	holder := w.holder(r.maintenance, r.node)
	w.goDown(r.node)
	w.awaitAllowed(myApp, 0)
	w.awaitAllowed(yourApp, 0)
	w.assertStaysLocked(holder, myApp, yourApp)
	w.boot(r.node)
	w.setStage(r.maintenance, v1alpha1.StageComplete)
	w.awaitRecord(r.node, "False", v1alpha1.ReasonReleasing)
	w.assertStaysLocked(holder, myApp, yourApp)
	w.start(w.replica(myApp, r.node))
	w.eventually("the lock of "+myApp+" to be gone", func() (bool, any) {
		now := w.lockedBy(myApp)
		return now != holder, now
	})
	w.assertStaysLocked(holder, yourApp)
	w.recover(r.node)
	w.awaitAbsent(&v1alpha1.DrainRecord{}, r.node)
}
