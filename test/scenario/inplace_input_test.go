package scenario

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Two maintenances of a node that comes back share its locks. The older one's are
// handed over when it is over; at no time are they free.
func TestLongTwoMaintenancesInPlaceShareANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "db")
	locks := w.watchLocks()
	w.maintainInPlace("older", minutes, node)
	w.awaitDrained("older")
	w.maintainInPlace("younger", minutes, node)
	w.awaitDrained("younger")
	w.goDown(node)

	w.setStage("older", v1alpha1.StageComplete)
	w.awaitLock(w.holder("younger", node), "db")
	w.boot(node)
	w.setStage("younger", v1alpha1.StageComplete)
	w.awaitRecord(node, "False", v1alpha1.ReasonReleasing)
	w.recover(node)

	w.awaitNothingLocked(node)
	locks.assertHolders(map[string][]string{"db": {w.holder("older", node), w.holder("younger", node), ""}})
}

// Somebody else wants the same node to be empty. Then pods do not stay, and nothing
// remains locked for them.
func TestLongAnOrdinaryDrainOfTheSameNodeWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "db")
	w.maintainInPlace("upgrade", minutes, node)
	w.awaitDrained("upgrade")
	w.awaitLock(w.holder("upgrade", node), "db")

	w.maintain("replace", v1alpha1.StageDrain, []string{node})

	w.awaitGone("db")
	w.awaitLock("", "db")
	w.awaitDrained("replace")
	w.awaitDrained("upgrade")
	w.setStage("replace", v1alpha1.StageComplete)
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(node)
}

// A drain plan that names pods which stay changes only when the others leave. A pod
// that would not survive until the node is back leaves as well, and is told why.
func TestOnlyPodsThatLastStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "short")
	patient := w.podOn(node, pod{name: "patient", labels: map[string]string{v1alpha1.OnUpgradeLabel: "Stay"}})
	patient.Spec.Tolerations = enduring(600)
	w.createPod(patient)
	planned := w.planned("upgrade", v1alpha1.StageDrain, named([]string{node}),
		[]v1alpha1.DrainPlanEntry{selecting(entry(1000), "name", "patient"), selecting(entry(1000), "name", "short")})
	planned.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 600}
	w.create(planned)
	t.Cleanup(func() { w.forget("upgrade") })

	w.awaitGone("short")
	w.awaitWarning("Pod", "short", "TolerationTooShort", "node.kubernetes.io/")
	w.awaitDrained("upgrade")
	w.awaitPod("patient", "left alone", available)
	w.assertNodeStatus("upgrade", node, func(s v1alpha1.NodeMaintenanceNodeStatus) any { return s.PodsRetained }, int32(1))
}

// A lock that a drain has, and that a person takes away, is missed and taken again.
// While somebody else has it the node is not drained.
func TestLongALostLockIsTakenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "db")
	w.maintainInPlace("upgrade", minutes, node)
	w.awaitDrained("upgrade")

	w.setLock("db", `{"holder":"dba","expiresAt":"2100-01-01T00:00:00Z"}`)
	w.awaitWarning("NodeMaintenance", w.name("upgrade"), "LockLost", w.ns+"/db")
	w.awaitWaits("upgrade", node, "is locked by dba")
	w.setLock("db", "")
	w.awaitDrained("upgrade")
	w.awaitLock(w.holder("upgrade", node), "db")

	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "db"}}
	w.must("delete the budget", w.client.Delete(w.ctx, budget))
	w.createBudget("db", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0))})
	w.awaitLock(w.holder("upgrade", node), "db")
	w.awaitDrained("upgrade")
}

// A node that does not come back keeps nothing locked.
func TestANodeVanishesWithItsLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "db")
	w.maintainInPlace("upgrade", minutes, node)
	w.awaitDrained("upgrade")
	w.goDown(node)

	w.deleteNode(node)
	w.must("delete the pod as podgc does", w.cluster.Client.Delete(w.ctx, w.podsOn(node)[0]))

	w.awaitAbsent(&v1alpha1.DrainRecord{}, node)
	w.awaitLock("", "db")
}
