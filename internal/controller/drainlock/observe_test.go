package drainlock

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
)

func taken(ago time.Duration) *v1alpha1.DrainRecord {
	record := aRecord("one", "web")
	record.Status.ObservedGeneration = 1
	record.Status.Locks = []v1alpha1.RecordedLock{{
		BudgetReference: record.Spec.Budgets[0], AcquiredTime: metav1.NewTime(noon.Add(-ago)),
	}}
	return record
}

// A lock is confirmed on what the API server says, and only when no eviction of our
// own is under way that may not have seen it.
func TestLockIsConfirmedByALiveRead(t *testing.T) {
	t.Parallel()
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	locked := lockedBy(aBudget("web", 1), budget.Holder("upgrade", "one"), time.Hour)
	exhausted := lockedBy(aBudget("web", 0), budget.Holder("upgrade", "one"), time.Hour)
	ready, unready := aPod("web", "one"), aPod("web", "one")
	unready.Status.Conditions[0].Status = corev1.ConditionFalse
	for name, test := range map[string]struct {
		cached, live *policyv1.PodDisruptionBudget
		pod          *corev1.Pod
		busy         traffic
		// early has the lock be taken just now.
		early bool
		want  bool
	}{
		"allowed":                              {cached: locked, live: locked, pod: ready, want: true},
		"the cache does not know of that yet":  {cached: exhausted, live: locked, pod: ready, want: true},
		"the cache allows more than there is":  {cached: locked, live: exhausted, pod: ready},
		"so it does, but no pod is ready":      {cached: locked, live: exhausted, pod: unready, want: true},
		"just taken":                           {cached: locked, live: locked, pod: ready, early: true},
		"an eviction is under way":             {cached: locked, live: locked, pod: ready, busy: traffic{web: true}},
		"an eviction of others is":             {cached: locked, live: locked, pod: ready, busy: traffic{{Namespace: "shop", Name: "db"}: true}, want: true},
		"whoever evicts does not see the lock": {cached: aBudget("web", 1), live: locked, pod: ready},
		"whoever evicts sees another one":      {cached: lockedBy(aBudget("web", 1), "team shop", time.Hour), live: locked, pod: ready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := taken(time.Minute)
			if test.early {
				record = taken(0)
			}
			// The cache shows a pod that is ready: only the API server knows better.
			w, server := newWorld(t, record, test.cached, ready), newWorld(t, record, test.live, test.pod)
			w.busy = test.busy
			n := w.nodes()
			n.live = server.api.Manager
			seen, err := n.observe(t.Context(), "one")
			w.must(err)
			decision := core.Decide(*seen)
			confirmed := decision.Status != nil && len(decision.Status.Locks) == 1 && decision.Status.Locks[0].ConfirmedTime != nil
			if confirmed != test.want {
				t.Errorf("the lock is confirmed: %v, want %v, in %+v", confirmed, test.want, decision.Status)
			}
		})
	}
}

// Budgets that the record names are asked for even if the cache does not show them.
func TestABudgetThatOnlyTheAPIServerKnowsIsRead(t *testing.T) {
	t.Parallel()
	record := taken(time.Minute)
	w, server := newWorld(t, record), newWorld(t, record, aBudget("web", 1))
	n := w.nodes()
	n.live = server.api.Manager
	seen, err := n.observe(t.Context(), "one")
	w.must(err)
	if !seen.Live || len(seen.Budgets) != 1 {
		t.Errorf("live is %v and there are %d budgets, want the one of the API server", seen.Live, len(seen.Budgets))
	}
}

func TestLocksAreCountedAndTheWaitForThemMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newMetrics(w.registry)
	gauge := func() (locks float64, waits uint64, seconds float64) {
		families, err := w.registry.Gather()
		w.must(err)
		return families[0].GetMetric()[0].GetGauge().GetValue(),
			families[1].GetMetric()[0].GetHistogram().GetSampleCount(), families[1].GetMetric()[0].GetHistogram().GetSampleSum()
	}
	wants := func(what string, wantLocks float64, wantWaits uint64, wantSeconds float64) {
		t.Helper()
		locks, waits, seconds := gauge()
		if diff := cmp.Diff([]any{wantLocks, wantWaits, wantSeconds}, []any{locks, waits, seconds}); diff != "" {
			t.Errorf("%s: locks, waits and seconds (-want +got):\n%s", what, diff)
		}
	}
	before := aRecord("one", "db", "web")
	m.wrote(before, taken(0), noon.Add(2*time.Second))
	wants("one lock is taken", 1, 0, 0)
	m.wrote(before, held(aRecord("one", "db", "web")), noon.Add(5*time.Second))
	wants("held", 2, 1, 5)
	m.wrote(held(aRecord("one", "db", "web")), held(aRecord("one", "db", "web")), noon.Add(time.Hour))
	wants("held as before", 2, 1, 5)
	lost := aRecord("two", "web")
	lost.Status.WaitStartTime = &metav1.Time{Time: noon.Add(time.Hour)}
	m.wrote(lost, held(aRecord("two", "web")), noon.Add(time.Hour+3*time.Second))
	wants("held again by another node", 3, 2, 8)
	m.wrote(aRecord("three"), held(aRecord("three")), noon.Add(time.Hour))
	wants("nothing to hold", 3, 2, 8)
	m.gone("one")
	m.gone("one")
	wants("gone", 1, 2, 8)
	if newMetrics(w.registry).locks != m.locks {
		t.Error("a second manager of the process should count in the same place")
	}
}
