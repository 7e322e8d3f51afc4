package drainlock

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
)

var errGuard = errors.New("the webhook of somebody else says no")

// One of the budgets of a node can never be written. The other node, which comes
// later in every queue and needs the same mutex and one of the same budgets, has
// its locks all the same; the first says what is wrong and gives up in time.
func TestABudgetThatCannotBeWrittenHoldsUpNoOtherNode(t *testing.T) {
	t.Parallel()
	p := newPlay(t, -1, aRecord("one", "db", "guarded"), aRecord("two", "db", "web"))
	attempts := 0
	p.api.Refuse = func(request string) error {
		if request == "patch PodDisruptionBudget guarded" {
			attempts++
			return errGuard
		}
		return nil
	}
	begun := p.clock.Now()
	p.until("the other node is held", func() bool { return p.held("two") })
	if waited := p.clock.Now().Sub(begun); waited > 10*time.Second {
		t.Errorf("the other node waited for %s", waited)
	}
	p.complete("two")
	p.until("the other node is through", func() bool { return len(p.records()) == 1 })
	p.step()

	record, _ := read(p.world, aRecord("one"))
	locked := meta.FindStatusCondition(record.Status.Conditions, v1alpha1.ConditionLocked)
	if locked.Reason != v1alpha1.ReasonBudgetRefused || !strings.Contains(locked.Message, errGuard.Error()) {
		t.Errorf("condition is %s %q, want %s with the error", locked.Reason, locked.Message, v1alpha1.ReasonBudgetRefused)
	}
	p.until("given up", func() bool {
		record, _ = read(p.world, aRecord("one"))
		return core.GivenUp(record, v1alpha1.BudgetReference{Namespace: "shop", Name: "guarded", UID: "uid-of-guarded"})
	})
	if attempts > 12 {
		t.Errorf("the budget was written to %d times in %s", attempts, p.clock.Now().Sub(begun))
	}
	if diff := cmp.Diff(locked.Message, record.Status.GivenUp[0].Message); diff != "" {
		t.Errorf("given up because of (-want +got):\n%s", diff)
	}
}

// A read that fails stops that node and says so, and nothing is written for it.
func TestFailedReadIsNotConsent(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"get DrainRecord one":              "observe: get the drain record of node one: ",
		"list PodDisruptionBudget":         "observe: list budgets: ",
		"get PodDisruptionBudget web":      "observe: get budget shop/web: ",
		"list Pod":                         "observe: list the pods of node one: ",
		"get Lease drain-lock-mutex":       "observe: get Lease drain-lock-mutex: ",
		"get DrainRecord elsewhere":        "observe: get the drain record of node elsewhere: ",
		"update status of DrainRecord one": "write the status of the drain record: ",
	} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, -1, aRecord("one", "web"))
			mutex := aMutex()
			mutex.Spec.HolderIdentity = new("upgrade/elsewhere")
			p.must(p.api.Create(t.Context(), mutex))
			p.refuse(request)
			_, err := p.alive.Reconcile(t.Context(), requestOf("one"))
			if err == nil || err.Error() != want+errGuard.Error() {
				t.Errorf("error is %v, want %q", err, want+errGuard.Error())
			}
			others := slices.DeleteFunc(p.api.Writes(), func(write string) bool { return write == request })
			if len(others) > 0 {
				t.Errorf("there were writes all the same: %q", others)
			}
		})
	}
}

// Delete deletes the very pods whose budget was given up, one that cannot be deleted
// keeps no other, and each deletion is told of once.
func TestDeletePastBudgets(t *testing.T) {
	t.Parallel()
	p := newDeletion(t)
	p.refuse("delete Pod web-one-guarded")
	p.step()
	p.clock.Step(299 * time.Second)
	p.step()
	all := []string{"db-one", "web-one", "web-one-guarded", "web-one-replaced", "web-one-second"}
	if diff := cmp.Diff(all, p.left()); diff != "" {
		t.Errorf("pods before the timeout (-want +got):\n%s", diff)
	}
	p.clock.Step(2 * time.Second)
	p.step()
	p.leaveOut("one", "web")
	p.until("the other budget is locked", func() bool { return len(p.locked()) == 1 })
	if diff := cmp.Diff([]string{"db-one", "web-one-guarded", "web-one-replaced"}, p.left()); diff != "" {
		t.Errorf("pods after the timeout (-want +got):\n%s", diff)
	}
	told := slices.DeleteFunc(p.kinds(), func(e string) bool { return !strings.HasPrefix(e, "PodDeletedPastBudget") })
	want := []string{
		"PodDeletedPastBudget on Pod/web-one", "PodDeletedPastBudget on NodeMaintenance/upgrade",
		"PodDeletedPastBudget on Pod/web-one-second", "PodDeletedPastBudget on NodeMaintenance/upgrade",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
	p.api.Refuse = nil
	p.clock.Step(lastPause)
	p.step()
	if diff := cmp.Diff([]string{"db-one", "web-one-replaced"}, p.left()); diff != "" {
		t.Errorf("pods at last (-want +got):\n%s", diff)
	}
}

// newDeletion is a node with a budget that allows nothing, whose pods are to be
// deleted: one is slow, one is guarded, and one was replaced since.
func newDeletion(t *testing.T) *play {
	t.Helper()
	record := aRecord("one", "web", "db")
	record.Spec.InPlace.OnLockTimeout = v1alpha1.LockTimeoutDelete
	var pods []*corev1.Pod
	for name, recorded := range map[string]types.UID{"second": "second", "guarded": "guarded", "replaced": "older"} {
		pod := aPod("web", "one")
		pod.Name, pod.UID = "web-one-"+name, types.UID(name)
		if name == "second" {
			pod.Finalizers = []string{"example.com/slow"}
		}
		pods = append(pods, pod)
		staying := v1alpha1.StayingPod{Namespace: "shop", Name: pod.Name, UID: recorded, BudgetUIDs: []types.UID{"uid-of-web"}}
		record.Spec.Pods = append(record.Spec.Pods, staying)
	}
	p := newPlay(t, -1, record)
	for _, pod := range pods {
		p.must(p.api.Create(t.Context(), pod))
	}
	p.allow("web", 0)
	return p
}

// leaveOut has a record not need a budget any more, as the pass does for one that
// was given up.
func (p *play) leaveOut(node, name string) {
	p.t.Helper()
	record, _ := read(p.world, aRecord(node))
	if !core.GivenUp(record, v1alpha1.BudgetReference{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}) {
		p.t.Fatalf("budget %s was not given up in\n%s", name, strings.Join(p.state(), "\n"))
	}
	record.Spec.Budgets = slices.DeleteFunc(record.Spec.Budgets, func(b v1alpha1.BudgetReference) bool { return b.Name == name })
	record.Generation++
	p.must(p.api.Update(p.t.Context(), record))
}

func (p *play) left() []string {
	p.t.Helper()
	var list corev1.PodList
	p.must(p.api.List(p.t.Context(), &list))
	var names []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// refuse refuses one request whenever it is made.
func (w *world) refuse(request string) {
	w.api.Refuse = func(asked string) error {
		if asked == request {
			return errGuard
		}
		return nil
	}
}

// The cache is behind: the pod was deleted a moment ago, or is another one.
func TestAPodIsDeletedOnce(t *testing.T) {
	t.Parallel()
	leaving := aPod("web", "one")
	leaving.Finalizers = []string{"example.com/slow"}
	for name, test := range map[string]struct {
		stored *corev1.Pod
		want   []string
	}{
		"as observed": {stored: aPod("web", "one"), want: []string{"delete Pod web-one"}},
		"leaving":     {stored: leaving},
		"gone":        {stored: aPod("other", "one")},
		"another":     {stored: changed(aPod("web", "one"), func(p *corev1.Pod) { p.UID = "other" })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.stored)
			if name == "leaving" {
				w.must(w.api.Delete(t.Context(), test.stored))
			}
			seen := &core.Snapshot{Record: aRecord("one")}
			w.must(w.nodes().act(t.Context(), seen, core.Step{Kind: core.DeletePod, Pod: aPod("web", "one")}))
			if diff := cmp.Diff(test.want, w.api.Writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPausesAfterRefusalsGrow(t *testing.T) {
	t.Parallel()
	r, now := newRefusals(), noon
	var pauses []time.Duration
	for range 10 {
		r.add("one", "web", "no", now)
		refused, due := r.of("one", now)
		if diff := cmp.Diff(map[types.UID]string{"web": "no"}, refused); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		pauses = append(pauses, due)
		now = now.Add(due)
		if refused, due := r.of("one", now); len(refused) > 0 || due > 0 {
			t.Errorf("after the pause %v are refused, for %s", refused, due)
		}
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	r.drop("one", "web")
	r.add("one", "web", "no", now)
	if _, due := r.of("one", now); due != firstPause {
		t.Errorf("after a success the pause is %s, want %s", due, firstPause)
	}
	if _, due := r.of("two", now); due != 0 {
		t.Errorf("another node waits for %s", due)
	}
	r.forget("one")
	if refused, _ := r.of("one", now); len(refused) > 0 {
		t.Errorf("%v are refused for a node that was forgotten", refused)
	}
}
