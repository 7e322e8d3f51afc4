package drainlock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// keep reconciles a budget and returns when it is due again.
func (w *world) keep(k *keeper, b *policyv1.PodDisruptionBudget) (time.Duration, error) {
	w.t.Helper()
	result, err := k.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	return result.RequeueAfter, err
}

func (w *world) kinds() []string {
	var kinds []string
	for _, e := range w.api.Events() {
		kinds = append(kinds, e[:strings.Index(e, ":")])
	}
	return kinds
}

// Which locks are kept is for core to decide: these are one of each kind.
func TestWhichLocksAreKept(t *testing.T) {
	t.Parallel()
	web, ours := aBudget("web", 1), budget.Holder("upgrade", "one")
	for name, test := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		record *v1alpha1.DrainRecord
		// kept is whether the lock stays, due when it is looked at again.
		kept  bool
		due   time.Duration
		event []string
	}{
		"of an owner":                {budget: lockedBy(web, "team shop", time.Hour), kept: true, due: time.Hour},
		"of an owner, ended":         {budget: lockedBy(web, "team shop", -time.Minute), event: []string{"LockEnded on PodDisruptionBudget/web"}},
		"of a node with a record":    {budget: lockedBy(web, ours, time.Hour), record: aRecord("one"), kept: true},
		"of a node without a record": {budget: lockedBy(web, ours, time.Hour), event: []string{"StrayLockRemoved on PodDisruptionBudget/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.budget)
			if test.record != nil {
				w.must(w.api.Create(t.Context(), test.record))
			}
			due, err := w.keep(w.keeper(), test.budget)
			w.must(err)
			stored, _ := read(w, test.budget)
			if _, kept := stored.Annotations[v1alpha1.LockAnnotation]; kept != test.kept || due != test.due {
				t.Errorf("kept is %v and due again in %s, want %v and %s", kept, due, test.kept, test.due)
			}
			if diff := cmp.Diff(test.event, w.kinds()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// The cache does not show the record yet, or cannot be asked: nothing is removed.
func TestOnlyTheAPIServerIsBelievedThatALockIsStray(t *testing.T) {
	t.Parallel()
	locked := lockedBy(aBudget("web", 1), budget.Holder("upgrade", "one"), time.Hour)
	for name, test := range map[string]struct {
		behind bool
		refuse error
		want   string
	}{
		"the cache is behind":         {behind: true},
		"the API server has an error": {refuse: errGuard, want: "get the drain record of node one: " + errGuard.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, fresh := newWorld(t, locked), newWorld(t, locked)
			if test.behind {
				fresh = newWorld(t, locked, aRecord("one"))
			}
			fresh.api.Refuse = func(string) error { return test.refuse }
			k := w.keeper()
			k.live = fresh.api.Manager
			_, err := w.keep(k, locked)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want || len(w.api.Writes()) > 0 {
				t.Errorf("error %q and writes %q, want %q and none", got, w.api.Writes(), test.want)
			}
		})
	}
}

// A lock that nobody can read is warned of once, until there is another one.
func TestUnreadableLockWarnsOnce(t *testing.T) {
	t.Parallel()
	young := aBudget("web", 1)
	young.CreationTimestamp = metav1.NewTime(noon)
	w := newWorld(t, bearing(young, "mine!"))
	k := w.keeper()
	look := func(want int) {
		t.Helper()
		_, err := w.keep(k, young)
		w.must(err)
		if got := len(w.api.Events()); got != want {
			t.Errorf("there are %d events, want %d: %q", got, want, w.api.Events())
		}
	}
	write := func(lock string) {
		t.Helper()
		stored, _ := read(w, young)
		stored.Annotations = map[string]string{v1alpha1.LockAnnotation: lock}
		w.must(w.api.Update(t.Context(), stored))
	}
	look(1)
	look(1)
	write("still mine!")
	look(2)
	stored, _ := read(w, young)
	stored.Annotations = nil
	w.must(w.api.Update(t.Context(), stored))
	look(2)
	write("still mine!")
	look(3)
	w.clock.Step(budget.UnreadableLock)
	look(4)
	if last := w.kinds()[3]; last != "LockEnded on PodDisruptionBudget/web" {
		t.Errorf("the last event is %q", last)
	}
	if stored, _ = read(w, young); len(stored.Annotations) > 0 {
		t.Errorf("the lock is still there: %v", stored.Annotations)
	}
}

// Somebody was faster: the lock is looked at again soon, and what was written stays.
func TestALockThatHasChangedIsNotRemoved(t *testing.T) {
	t.Parallel()
	stray := lockedBy(aBudget("web", 1), budget.Holder("upgrade", "one"), time.Hour)
	w := newWorld(t, stray)
	refusal := apierrors.NewConflict(policyv1.Resource("poddisruptionbudgets"), "web", errors.New("the object has been modified"))
	w.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "patch ") {
			return refusal
		}
		return nil
	}
	k := w.keeper()
	for range 2 {
		due, err := w.keep(k, stray)
		w.must(err)
		if due <= 0 || due > time.Second {
			t.Errorf("due again in %s, want it soon", due)
		}
	}
	if len(w.api.Events()) > 0 {
		t.Errorf("events are %q, want none: nothing was removed", w.api.Events())
	}
	w.api.Refuse = nil
	_, err := w.keep(k, stray)
	w.must(err)
	if stored, _ := read(w, stray); len(stored.Annotations) > 0 {
		t.Errorf("the lock is still there: %v", stored.Annotations)
	}
}
