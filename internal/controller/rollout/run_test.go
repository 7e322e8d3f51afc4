package rollout

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The manager may be killed behind any of its writes: the next one comes to the same end, and never
// are more nodes unavailable than allowed. A node does not drain, is retried and fails.
func TestManagerKilledBehindEveryWriteComesToTheSameEnd(t *testing.T) {
	t.Parallel()
	assertKilledBehindEveryWrite(t, "4 of 5 nodes done, 1 failed", func(t *testing.T) *fleet {
		t.Helper()
		f := newFleet(t, 5, 2)
		f.blocked["node-001"] = true
		return f
	})
}

// So it is if the rollout is aborted or deleted when a node is drained and another one drains.
func TestManagerKilledBehindEveryWriteOfAnEnd(t *testing.T) {
	t.Parallel()
	ending := func(end func(*fleet, *v1alpha1.NodeRollout)) func(t *testing.T) *fleet {
		return func(t *testing.T) *fleet {
			t.Helper()
			f := newFleet(t, 5, 2)
			f.blocked["node-001"] = true
			f.midway = func(r *v1alpha1.NodeRollout) { end(f, r) }
			r := f.rollout("kernel")
			r.Spec.Failure.DrainTimeoutSeconds = nil
			f.must(f.api.Update(t.Context(), r))
			return f
		}
	}
	assertKilledBehindEveryWrite(t, "spec.state is Aborted", ending(func(f *fleet, r *v1alpha1.NodeRollout) {
		r.Spec.State, r.Generation = v1alpha1.RolloutAborted, r.Generation+1
		f.must(f.api.Update(f.t.Context(), r))
	}))
	assertKilledBehindEveryWrite(t, "kernel-node", ending(func(f *fleet, r *v1alpha1.NodeRollout) {
		f.must(f.api.Delete(f.t.Context(), r))
	}))
}

// assertKilledBehindEveryWrite runs a fleet in peace, whose state begins with a text, and then once
// for each of its writes.
func assertKilledBehindEveryWrite(t *testing.T, begins string, start func(t *testing.T) *fleet) {
	t.Helper()
	calm := start(t)
	calm.run()
	want, writes := calm.state(), calm.api.Writes()
	if calm.broken != "" || len(writes) < 10 || !strings.Contains(want[0], begins) {
		t.Fatalf("in peace it comes to\n%s\nby %d writes; %s", strings.Join(want, "\n"), len(writes), calm.broken)
	}
	for i := range writes {
		f := start(t)
		f.api.KillAfter(i + 1)
		f.run()
		if got := f.state(); !slices.Equal(got, want) || f.broken != "" {
			t.Errorf("killed behind write %d, %s, it comes to\n%s\nwant\n%s\n%s", i+1, writes[i], strings.Join(got, "\n"), strings.Join(want, "\n"), f.broken)
		}
	}
}

// Every write may fail, once with and once without an effect.
func TestEveryFailedWriteIsMadeUp(t *testing.T) {
	t.Parallel()
	calm := newFleet(t, 3, 2)
	calm.run()
	want := calm.state()
	for i := range calm.api.Writes() {
		f := newFleet(t, 3, 2)
		var number int
		f.api.Refuse = func(request string) error {
			if verb, _, _ := strings.Cut(request, " "); verb == "get" || verb == "list" {
				return nil
			}
			if number++; number == i+1 {
				return errCut
			}
			return nil
		}
		f.run()
		if got := f.state(); !slices.Equal(got, want) || f.broken != "" {
			t.Errorf("write %d: it comes to\n%s\nwant\n%s\n%s", i+1, strings.Join(got, "\n"), strings.Join(want, "\n"), f.broken)
		}
	}
}

// A rollout that waits is not written.
func TestIdleRolloutIsNotWritten(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 1)
	f.blocked["node-000"] = true
	m := f.manager(nil)
	for range 3 {
		m.pass()
		m.sync()
	}
	before := len(f.api.Writes())
	for range 20 {
		m.pass()
		m.sync()
	}
	if written := f.api.Writes()[before:]; len(written) > 0 || len(f.rollout("kernel").Status.Working) != 1 {
		t.Errorf("it writes %q", written)
	}
}

// Two managers act at the same time for 100 nodes, and the caches of both are behind. No node is
// maintained twice, and never are too many.
func TestTwoManagersRaceForTheSameNodes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 100, 10)
	replicas := []*replica{f.manager(nil), f.manager(nil)}
	for _, one := range replicas {
		one.created = f.watch
	}
	for round := 0; !f.complete(); round++ {
		if round > 2000 {
			t.Fatalf("there is no end: %+v", f.rollout("kernel").Status)
		}
		f.race(round, replicas)
		f.advance(func(m *v1alpha1.NodeMaintenance) bool { return (len(m.Name)+round)%3 > 0 })
	}
	var all v1alpha1.NodeMaintenanceList
	f.must(f.api.List(t.Context(), &all))
	if f.broken != "" || len(all.Items) != 100 {
		t.Errorf("there are %d NodeMaintenances; %s", len(all.Items), f.broken)
	}
	for i, one := range replicas {
		if len(one.seen) < 20 {
			t.Errorf("manager %d decided %d times", i, len(one.seen))
		}
	}
}

// race has managers decide and write at the same time. Each is behind by some rounds, in turn.
func (f *fleet) race(round int, replicas []*replica) {
	f.t.Helper()
	f.clock.Step(decisionInterval)
	var racing sync.WaitGroup
	for i, one := range replicas {
		if round%(2+i) == 0 {
			one.sync()
		}
		racing.Go(func() {
			if _, err := one.Reconcile(f.t.Context(), pass{}); err != nil {
				f.t.Error(err)
			}
			one.flights.wait()
		})
	}
	racing.Wait()
	f.watch()
}

// A node whose NodeMaintenance is refused waits for that, and the others go on. Then it is done.
func TestRefusedNodeIsShownAndOthersGoOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 1)
	f.refuse("create NodeMaintenance kernel-node-000", errForbidden)
	m := f.manager(nil)
	for range 20 {
		m.sync()
		m.pass()
		f.watch()
		f.advance(all)
	}
	status := f.rollout("kernel").Status
	refused := func(w v1alpha1.RolloutWait) bool {
		return w.Reason == v1alpha1.RolloutWaitsForWrite && strings.Contains(w.Message, "denied by a test") && w.NodeCount == 1 && w.Nodes[0].Name == "node-000"
	}
	if status.DoneCount != 2 || !slices.ContainsFunc(status.Waiting, refused) {
		t.Errorf("while it is refused the status is %+v", status)
	}
	f.api.Refuse = nil
	f.run()
	if done := f.rollout("kernel").Status.DoneCount; done != 3 || f.broken != "" {
		t.Errorf("in the end %d nodes are done; %s", done, f.broken)
	}
}

// Two managers race, and each is killed again and again, behind any of its writes. The next ones come to
// the same end.
func TestKilledManagersRaceForTheSameNodes(t *testing.T) {
	t.Parallel()
	newFleet(t, 40, 4).assertKilledManagersRace(40, 3000, rand.New(rand.NewPCG(1, 2)))
}

// assertKilledManagersRace has two managers race, each of which is killed again and again, and expects
// all nodes to be done after at most so many rounds.
func (f *fleet) assertKilledManagersRace(nodes, rounds int, random *rand.Rand) {
	f.t.Helper()
	replicas, killed := make([]*replica, 2), 0
	for round := 0; !f.complete(); round++ {
		if round > rounds {
			f.t.Fatalf("there is no end: %+v", f.rollouts())
		}
		for i := range replicas {
			if replicas[i] == nil || replicas[i].dead() {
				replicas[i], killed = f.manager(nil), killed+1
				replicas[i].lives, replicas[i].created = 1+random.IntN(9), f.watch
			}
		}
		f.race(round, replicas)
		f.clock.Step(3 * time.Second)
		f.advance(func(*v1alpha1.NodeMaintenance) bool { return random.IntN(3) > 0 })
	}
	if all := f.maintenances(); f.broken != "" || len(all) != nodes || killed < 10 {
		f.t.Errorf("%d managers made %d NodeMaintenances; %s", killed, len(all), f.broken)
	}
}
