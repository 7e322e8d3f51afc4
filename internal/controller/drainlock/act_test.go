package drainlock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Of two nodes that have seen the same only the first gets what both want, the
// mutex or a lock, and the other one decides again.
func TestConflictDecidesAgain(t *testing.T) {
	t.Parallel()
	lease := func(holder string) core.Step {
		return core.Step{Kind: core.TakeMutex, Mutex: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}}
	}
	lock := func(holder string) core.Step { return core.Step{Kind: core.WriteLock, Lock: holder} }
	free := aMutex()
	free.Labels = map[string]string{"team": "nodes"}
	for name, test := range map[string]struct {
		stored []client.Object
		step   func(holder string) core.Step
		// want is whose it is in the end.
		want string
	}{
		"the mutex that there is not": {step: lease, want: "upgrade/one"},
		"the mutex that is free":      {stored: []client.Object{free}, step: lease, want: "upgrade/one"},
		"a lock":                      {stored: []client.Object{aBudget("web", 1)}, step: lock, want: "upgrade/one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.stored...)
			one, two := w.step(aRecord("one"), test.step("upgrade/one")), w.step(aRecord("two"), test.step("upgrade/two"))
			w.must(one())
			if err := two(); !kube.IsStale(err) {
				t.Errorf("who comes second is answered %v, want that it was decided on old state", err)
			}
			mutex, locked := w.holders()
			if got := mutex + locked; got != test.want {
				t.Errorf("it is held by %q, want %q", got, test.want)
			}
			for _, object := range test.stored {
				stored, _ := read(w, object)
				if diff := cmp.Diff(object.GetLabels(), stored.GetLabels()); diff != "" {
					t.Errorf("labels, which are not ours (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// step prepares a step on what is stored now.
func (w *world) step(record *v1alpha1.DrainRecord, step core.Step) func() error {
	w.t.Helper()
	seen := &core.Snapshot{Record: record}
	if mutex, there := read(w, aMutex()); there {
		seen.Mutex = mutex
	}
	if step.Mutex != nil && seen.Mutex != nil {
		step.Mutex.ResourceVersion = seen.Mutex.ResourceVersion
	}
	if b, there := read(w, aBudget("web", 1)); there {
		step.Budget = b
	}
	return func() error { return w.nodes().act(w.t.Context(), seen, step) }
}

func (w *world) holders() (mutex, lock string) {
	w.t.Helper()
	if stored, there := read(w, aMutex()); there && stored.Spec.HolderIdentity != nil {
		mutex = *stored.Spec.HolderIdentity
	}
	stored, _ := read(w, &policyv1.PodDisruptionBudget{ObjectMeta: aBudget("web", 1).ObjectMeta})
	return mutex, stored.Annotations[v1alpha1.LockAnnotation]
}

// The owner of 120 budgets makes up locks of a node, and writes all of them again
// whenever the node is looked at. It is told Held all the same, and its record ends.
func TestForgedLocksHoldUpNoDrain(t *testing.T) {
	t.Parallel()
	const holder = "nodemaintenance/upgrade/one"
	record := aRecord("one", "web")
	w := newWorld(t, record, aBudget("web", 1), aPod("web", "one"))
	for i := range 120 {
		w.must(w.api.Create(t.Context(), aBudget(fmt.Sprintf("a-forged-%03d", i), 1)))
	}
	n := w.nodes()
	reconcile := func(times int) {
		for range times {
			var all policyv1.PodDisruptionBudgetList
			w.must(w.api.List(t.Context(), &all))
			for i := range all.Items {
				if strings.HasPrefix(all.Items[i].Name, "a-forged") {
					w.must(w.api.Update(t.Context(), lockedBy(&all.Items[i], holder, time.Hour)))
				}
			}
			_, err := n.Reconcile(t.Context(), requestOf("one"))
			w.must(err)
			w.clock.Step(time.Second)
		}
	}
	reconcile(1)
	if seen, err := n.observe(t.Context(), "one"); err != nil || len(seen.Budgets) > 1+maxStrays {
		t.Errorf("a decision looks at %d budgets: %v", len(seen.Budgets), err)
	}
	reconcile(4)
	stored, _ := read(w, record)
	if !core.Held(stored) {
		t.Fatalf("the node waits: %+v", stored.Status)
	}
	stored.Spec.Complete = true
	w.must(w.api.Update(t.Context(), saidBack(stored)))
	reconcile(2)
	if left, there := read(w, record); there {
		t.Errorf("the record has not ended: %+v", left.Status)
	}
}
