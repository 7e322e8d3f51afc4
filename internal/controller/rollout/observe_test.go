package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

// A decision follows own writes, although the cache does not show them yet.
func TestOwnWritesAreKnownBeforeTheCacheHasThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	m := w.manager(starting)
	m.pass()
	due := m.pass()
	seen := m.last()
	if len(seen.Maintenances) != 1 || len(seen.Rollouts[0].Status.Working) != 1 || len(w.api.Writes()) != 2 {
		t.Fatalf("it sees %v and %v, and writes %q", seen.Rollouts, seen.Maintenances, w.api.Writes())
	}
	// A cache that never shows the NodeMaintenance is right in the end: it has been deleted.
	w.must(w.api.Delete(t.Context(), w.maintenance("kernel")))
	w.clock.Step(due + kube.RequestTimeout)
	if m.pass(); len(m.last().Maintenances) != 0 || len(m.last().Unknown) != 0 {
		t.Errorf("it sees %v, unknown %v", m.last().Maintenances, m.last().Unknown)
	}
}

// A NodeMaintenance that the cache has seen go is not remembered.
func TestDeletedMaintenanceIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	m := w.manager(starting)
	m.pass()
	m.sync()
	gone := w.maintenance("kernel")
	w.must(w.api.Delete(t.Context(), gone))
	m.sync()
	w.clock.Step(kube.RequestTimeout)
	if m.pass(); len(m.last().Maintenances) != 0 {
		t.Errorf("it sees %v", m.last().Maintenances)
	}
}

// A NodeMaintenance that is recorded and not in the cache is read from the API server. One that
// cannot be read is unknown, as is one that another manager may still create.
func TestRecordedMaintenanceIsReadFromTheAPIServer(t *testing.T) {
	t.Parallel()
	recorded := aRollout("kernel")
	recorded.Status.Working = []v1alpha1.RolloutNode{{Name: "one", NodeMaintenanceName: "there"}, {Name: "two", NodeMaintenanceName: "gone"}, {Name: "three"}}
	idle := func(*core.Snapshot) *core.Decision { return &core.Decision{} }
	seen := func(s *core.Snapshot) string {
		var all []string
		for _, m := range s.Maintenances {
			all = append(all, m.Name)
		}
		return fmt.Sprint(all, len(s.Unknown), s.Unknown["there"], s.Unknown["gone"])
	}
	w := newWorld(t, recorded)
	m := w.manager(idle)
	m.caughtUp = true
	w.must(w.api.Create(t.Context(), aMaintenance("there")))
	w.refuse("get NodeMaintenance", errCut)
	due := m.pass()
	if got := seen(m.last()); got != "[] 2 true true" || due != unknownPause {
		t.Errorf("unread, it sees %s, due in %s", got, due)
	}
	w.api.Refuse = nil
	w.clock.Step(due)
	if m.pass(); seen(m.last()) != "[there] 1 false true" {
		t.Errorf("while another manager may create it, it sees %s", seen(m.last()))
	}
	w.clock.Step(kube.RequestTimeout)
	if m.pass(); seen(m.last()) != "[there] 0 false false" {
		t.Errorf("later it sees %s", seen(m.last()))
	}
	if writes := w.api.Writes(); len(writes) > 0 {
		t.Errorf("it writes %q", writes)
	}
}

// A new manager reads what the former one wrote, which its own cache may lack.
func TestNewManagerReadsTheAPIServerOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	next := w.manager(starting)
	w.manager(starting).pass()
	next.pass()
	if seen := next.last(); len(seen.Maintenances) != 1 || len(seen.Rollouts[0].Status.Working) != 1 {
		t.Errorf("it sees %v and %v", seen.Rollouts, seen.Maintenances)
	}
	w.refuse("list", errCut)
	if next.pass(); len(w.api.Writes()) != 2 {
		t.Errorf("they write %q", w.api.Writes())
	}
	late := w.manager(starting)
	w.clock.Step(decisionInterval)
	if _, err := late.Reconcile(t.Context(), pass{}); !errors.Is(err, errCut) || len(late.seen) > 0 {
		t.Errorf("one that cannot read decides %d times: %v", len(late.seen), err)
	}
}

// Without rollouts nothing is read, and with none that needs anything nothing is written.
func TestNoRolloutCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.manager(starting)
	w.refuse("", errCut)
	if due := m.pass(); due != 0 || len(m.seen) > 0 || m.any.Load() {
		t.Errorf("it decides %d times, due in %s", len(m.seen), due)
	}
}

// The first decision is at once, the others follow it at an interval.
func TestDecisionsAreSpaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	wakes := func(s *core.Snapshot) *core.Decision { return &core.Decision{WakeTime: s.Now.Add(time.Hour)} }
	m := w.manager(wakes)
	for _, want := range []struct {
		decisions int
		due, step time.Duration
	}{{1, time.Hour, 0}, {1, decisionInterval, decisionInterval / 2}, {1, decisionInterval / 2, decisionInterval / 2}, {2, time.Hour, 0}} {
		result, err := m.Reconcile(t.Context(), pass{})
		if err != nil || len(m.seen) != want.decisions || result.RequeueAfter != want.due {
			t.Errorf("%d decisions, due in %s: %v, want %+v", len(m.seen), result.RequeueAfter, err, want)
		}
		w.clock.Step(want.step)
	}
}

// That a rollout is complete is final, so that it is confirmed by the nodes of the API server. These are
// not read again and again while that cannot be recorded, and if they cannot be read other decisions go
// on.
func TestCompleteRolloutIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"), aNode("old"))
	m := w.manager(func(s *core.Snapshot) *core.Decision { return &core.Decision{NeedsLive: !s.Live} })
	w.must(w.api.Create(t.Context(), aNode("new")))
	step := func(live bool, nodes int) {
		t.Helper()
		m.pass()
		if got := m.last(); got.Live != live || len(got.Nodes) != nodes {
			t.Errorf("it decides on %d nodes, live: %t, want %d and %t", len(got.Nodes), got.Live, nodes, live)
		}
	}
	step(true, 2)
	step(false, 1)
	w.clock.Step(confirmInterval)
	w.refuse("list Node", errCut)
	step(false, 1)
	w.api.Refuse = nil
	w.clock.Step(confirmInterval)
	step(true, 2)
}
