package drainlock

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// While the clock is not believed a lock that seems to have ended stays, which is told
// once. It is looked at again when the clock is believed, and goes.
func TestTheKeeperRemovesNothingByAClockThatIsNotBelieved(t *testing.T) {
	t.Parallel()
	locked := lockedBy(aBudget("web", 1), "dba", time.Hour)
	w := newWorld(t, locked, aBudget("free", 1))
	w.clock.Step(2 * time.Hour)
	w.doubt = "The manager's clock is wrong."
	k := w.keeper()
	for range 3 {
		due, err := w.keep(k, locked)
		w.must(err)
		if stored, _ := read(w, locked); due != 0 || len(stored.Annotations) == 0 {
			t.Fatalf("due again in %s, locks %v, want it to stay until somebody tells", due, stored.Annotations)
		}
	}
	if diff := cmp.Diff([]string{"LockKept on PodDisruptionBudget/web"}, w.kinds()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	w.doubt = ""
	held := k.held(t.Context())
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(locked)}}, held); diff != "" {
		t.Errorf("looked at again (-want +got):\n%s", diff)
	}
	_, err := w.keep(k, locked)
	w.must(err)
	if stored, _ := read(w, locked); len(stored.Annotations) > 0 {
		t.Errorf("the lock is still there: %v", stored.Annotations)
	}
}

// A node gets no locks while the clock is not believed, says why, and gets them
// afterwards, when it is looked at again.
func TestANodeGetsNoLocksByAClockThatIsNotBelieved(t *testing.T) {
	t.Parallel()
	p := newPlay(t, -1, aRecord("one", "db"), aRecord("two", "db"))
	p.doubt = "The manager's clock is wrong."
	p.restart()
	for range 20 {
		p.step()
		p.clock.Step(time.Minute)
	}
	for _, r := range p.records() {
		if held := p.held(r.Name); held || len(r.Status.Locks)+len(r.Status.GivenUp) > 0 {
			t.Errorf("node %s holds its locks: %v, %+v", r.Name, held, r.Status)
		}
		if said := r.Status.Conditions[0]; said.Reason != "ClockSkewed" {
			t.Errorf("node %s says %+v", r.Name, said)
		}
	}
	p.doubt = ""
	if again, all := len(p.alive.held(t.Context())), len(p.records()); again != all || all == 0 {
		t.Errorf("%d of %d records are looked at again", again, all)
	}
	p.until("a node holds its locks", func() bool {
		for _, r := range p.records() {
			if p.held(r.Name) {
				return true
			}
		}
		return false
	})
}
