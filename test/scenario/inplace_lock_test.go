package scenario

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// drainers are all who evict: a person with kubectl, a maintenance, and one of a
// node that comes back. Each has a pod with a budget of its own.
type drainers struct {
	*world
	nodes   []string
	kubectl *cluster.Kubectl
}

// guardedPods are the pods of kubectl, of the maintenance, and the one that stays.
var guardedPods = []string{"of-kubectl", "of-drain", "stays"}

// drainLocked has all of them drain while their budgets bear this lock.
func (w *world) drainLocked(lock string) *drainers {
	w.t.Helper()
	d := &drainers{world: w, nodes: w.nodes("one", "two", "three")}
	for i, name := range guardedPods {
		w.guarded(d.nodes[i], name)
	}
	for _, name := range guardedPods {
		w.setLock(name, lock)
	}
	w.maintain("drain", v1alpha1.StageDrain, d.nodes[1:2])
	w.maintainInPlace("upgrade", minutes, d.nodes[2])
	d.kubectl = w.drain(d.nodes[0], "60s")
	return d
}

// assertStopped wants all of them to say the same about the lock.
func (d *drainers) assertStopped(words string) {
	d.t.Helper()
	lockOf := func(name string) string { return "PodDisruptionBudget " + d.ns + "/" + name + " is locked by " + words }
	d.awaitSaid(d.kubectl, lockOf(guardedPods[0]))
	d.awaitWaits("drain", d.nodes[1], lockOf(guardedPods[1]))
	d.awaitWaits("upgrade", d.nodes[2], lockOf(guardedPods[2]))
	d.awaitPods("all pods left alone", readyPods(len(guardedPods)))
}

// assertGoOn wants all of them to end, those who are woken soon.
func (d *drainers) assertGoOn(since time.Time) {
	d.t.Helper()
	d.awaitGone(guardedPods[1])
	d.awaitLock(d.holder("upgrade", d.nodes[2]), guardedPods[2])
	took := time.Since(since)
	d.t.Logf("drains went on %s after the lock was gone", took.Round(10*time.Millisecond))
	if took < 0 {
		d.t.Errorf("the drains went on %s before the lock was gone", -took)
	}
	if output, err := d.kubectl.Wait(); err != nil {
		d.t.Errorf("kubectl drain: %v\n%s", err, output)
	}
	d.awaitDrained("drain")
	d.awaitDrained("upgrade")
	d.awaitPod(guardedPods[2], "left alone", available)
	d.sayBack(d.nodes[2])
	d.setStage("upgrade", v1alpha1.StageComplete)
	d.awaitNothingLocked(d.nodes[2])
}

// An application owner locks a budget. Nobody evicts its pods or takes its node
// down until the owner is ready, and then everybody goes on at once.
func TestTheLockOfAnOwnerStopsEveryDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.drainLocked(ownerLock(time.Now().Add(time.Hour)))
	d.assertStopped("dba until ")
	w.awaitWaits("upgrade", d.nodes[2], ": rebalancing")

	for _, name := range guardedPods {
		w.setLock(name, "")
	}

	d.assertGoOn(time.Now())
}
