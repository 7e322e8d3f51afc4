package eviction

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// lockedBy is the lock of a holder from now until a time, in the annotation.
func lockedBy(holder string, ends time.Time) string {
	return budget.Lock{
		Holder: holder, Reason: "defragmentation", AcquiredAt: metav1.Time{Time: time.Now()}, ExpiresAt: metav1.Time{Time: ends},
	}.Write()
}

// lock gives a budget this lock, or none if it is empty, and tells the queue of it.
func (w *world) lock(at **policyv1.PodDisruptionBudget, text string) {
	w.relock(at, text)
	synctest.Wait()
}

func (w *world) relock(at **policyv1.PodDisruptionBudget, text string) {
	w.mu.Lock()
	old := *at
	now := old.DeepCopy()
	now.Annotations = map[string]string{v1alpha1.LockAnnotation: text}
	if text == "" {
		now.Annotations = nil
	}
	*at = now
	w.mu.Unlock()
	w.queue.options.Dispatcher.BudgetChanged(old, now)
}

// after is so much later than the beginning.
func (w *world) after(d time.Duration) time.Time { return w.begin.Add(d) }

func told(name, holder string, ends time.Time) string {
	return fmt.Sprintf("PodDisruptionBudget shop/%s is locked by %s until %s: defragmentation", name, holder, ends.UTC().Format(time.RFC3339))
}

func (w *world) wantRequests(t *testing.T, want ...request) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.requests, cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("requests to evict (-want +got):\n%s", diff)
	}
}

// looked is how often budgets were read.
func (w *world) looked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks
}

func TestPodsOfALockedBudgetGoAtOnceWhenItIsUnlocked(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a", "b")
		w.allow(2)
		w.lock(&w.budget, lockedBy("dba", w.after(time.Hour)))
		w.want(blue, pods...)
		words := told("web", "dba", w.after(time.Hour))
		expect(t, "refused", w.refused(blue), "uid-a: "+words, "uid-b: "+words)
		want := evacuation.Outcome{Result: evacuation.Locked, Type: v1alpha1.BlockerPDBLocked, Budget: "web", Message: words}
		if diff := cmp.Diff(want, w.queue.Refusals(blue)["uid-a"]); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		w.pass(ReportAfter)
		expect(t, "news", w.heard(), "blue")
		w.pass(10 * time.Minute)
		w.wantRequests(t)
		expect(t, "news of the same lock", w.heard())

		w.lock(&w.budget, "")
		expect(t, "left", w.left())
		unlocked := ReportAfter + 10*time.Minute
		w.wantRequests(t, request{at: unlocked, pod: "uid-a"}, request{at: unlocked, pod: "uid-b"})
		expect(t, "refused", w.refused(blue))
		if diff := cmp.Diff(map[evacuation.Result]float64{evacuation.Evicted: 2}, w.counts(t)); diff != "" {
			t.Errorf("only what was asked is counted (-want +got):\n%s", diff)
		}
	})
}

func TestALockEndsWithoutAnySign(t *testing.T) {
	for name, tc := range map[string]struct {
		lock func(*world) string
		ends time.Duration
	}{
		"as it says":                  {func(w *world) string { return lockedBy("dba", w.after(7*time.Minute)) }, 7 * time.Minute},
		"in a moment":                 {func(w *world) string { return lockedBy("dba", w.after(time.Second)) }, time.Second},
		"as late as it may":           {func(w *world) string { return lockedBy("dba", w.after(1000*time.Hour)) }, budget.LongestLock},
		"when nobody can read it":     {func(*world) string { return "mine!" }, budget.UnreadableLock},
		"when nobody knows the times": {func(*world) string { return `{"holder":"dba","expiresAt":"9999-01-01T00:00:00Z"}` }, budget.LongestLock},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				pods := w.newPods("a", "b")
				w.allow(1)
				w.change(func() { w.budget.CreationTimestamp = metav1.Time{Time: w.begin} })
				w.lock(&w.budget, tc.lock(w))
				w.want(blue, pods...)
				w.pass(tc.ends - time.Nanosecond)
				w.wantRequests(t)
				w.pass(time.Nanosecond)
				left := w.left()
				if asked := append(w.asked("a"), w.asked("b")...); len(left) != 1 || len(asked) != 2 || asked[0].at != tc.ends {
					t.Fatalf("left %s after requests %+v, want both to try and one to go", left, asked)
				}
				expect(t, "refused", w.refused(blue), "uid-"+left[0]+": "+exhausted)
				w.allow(1)
				expect(t, "left", w.left())
			})
		})
	}
}

// A drain that takes long renews its locks all the time.
func TestRenewedLockWakesNoPodAndIsReportedAfterItsReportedEnd(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a", "b", "c")
		w.allow(3)
		w.lock(&w.budget, lockedBy("dba", w.after(10*time.Minute)))
		w.want(blue, pods...)
		w.pass(ReportAfter)
		expect(t, "news", w.heard(), "blue")
		for minute := 1; minute < 10; minute++ {
			before := w.looked()
			w.lock(&w.budget, lockedBy("dba", w.after(time.Duration(10+minute)*time.Minute)))
			if looks := w.looked() - before; looks != 0 {
				t.Errorf("the budgets are read %d times for a renewal, want never", looks)
			}
			w.pass(time.Minute - ReportAfter)
		}
		expect(t, "refused", w.refused(blue), "uid-a: "+told("web", "dba", w.after(10*time.Minute)),
			"uid-b: "+told("web", "dba", w.after(10*time.Minute)), "uid-c: "+told("web", "dba", w.after(10*time.Minute)))
		expect(t, "news of renewals", w.heard())
		if looks, most := w.looked(), 3*(2*9+1); looks > most {
			t.Errorf("the budgets are read %d times in nine minutes, want at most %d", looks, most)
		}
		w.pass(time.Minute + 10*time.Second)
		expect(t, "news of an end that was wrong", w.heard(), "blue")
		expect(t, "refused", w.refused(blue), "uid-a: "+told("web", "dba", w.after(19*time.Minute)),
			"uid-b: "+told("web", "dba", w.after(19*time.Minute)), "uid-c: "+told("web", "dba", w.after(19*time.Minute)))
		w.wantRequests(t)
		w.lock(&w.budget, "")
		expect(t, "left", w.left())
	})
}

func TestALockThatChangesIsSeenAtOnce(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(1)
		w.lock(&w.budget, lockedBy("dba", w.after(time.Hour)))
		w.want(blue, pods...)
		w.pass(time.Minute)
		w.lock(&w.budget, lockedBy("nodemaintenance/kernel/node-2", w.after(time.Hour)))
		expect(t, "another holder", w.refused(blue), "uid-a: "+told("web", "nodemaintenance/kernel/node-2", w.after(time.Hour)))
		w.pass(time.Minute)
		w.lock(&w.budget, lockedBy("nodemaintenance/kernel/node-2", w.after(2*time.Minute+7*time.Second)))
		w.pass(7*time.Second - time.Nanosecond)
		w.wantRequests(t)
		w.pass(time.Nanosecond)
		w.wantRequests(t, request{at: 2*time.Minute + 7*time.Second, pod: "uid-a"})
	})
}

// The node of the pods has locked their budget and goes for good all the same.
func TestLockOfTheOwnNodeDoesNotHoldBackItsPods(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(1)
		w.lock(&w.budget, lockedBy("nodemaintenance/kernel/node-2", w.after(time.Hour)))
		w.want(blue, pods...)
		expect(t, "another node's", w.refused(blue), "uid-a: "+told("web", "nodemaintenance/kernel/node-2", w.after(time.Hour)))
		w.pass(time.Minute)
		w.lock(&w.budget, lockedBy("nodemaintenance/kernel/node-1", w.after(time.Hour)))
		w.wantRequests(t, request{at: time.Minute, pod: "uid-a"})
	})
}

func TestALockOfOneOfTwoBudgetsHolds(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.change(func() { w.second = budgetNamed("zone", 1) })
		w.allow(1)
		w.lock(&w.second, lockedBy("dba", w.after(time.Hour)))
		w.want(blue, pods...)
		expect(t, "refused", w.refused(blue), "uid-a: "+told("zone", "dba", w.after(time.Hour)))
		w.lock(&w.budget, lockedBy("owner", w.after(2*time.Hour)))
		w.lock(&w.second, "")
		expect(t, "the other one is locked now", w.refused(blue), "uid-a: "+told("web", "owner", w.after(2*time.Hour)))
		w.wantRequests(t)
		w.lock(&w.budget, "")
		expect(t, "the API server has its say", w.refused(blue), "uid-a: "+several)
		w.change(func() {
			gone := w.second
			w.second = nil
			go w.queue.options.Dispatcher.BudgetChanged(gone, nil)
		})
		expect(t, "left", w.left())
	})
}

func TestDeletedBudgetReleasesPodsFromItsLock(t *testing.T) {
	for name, goes := range map[string]func(*world){
		"deleted": func(w *world) { w.budget = nil },
		"for other pods": func(w *world) {
			w.budget = w.budget.DeepCopy()
			w.budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		},
		"made anew": func(w *world) {
			w.budget = budgetNamed("web", 1)
			w.budget.UID = "another"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				w.allow(1)
				w.lock(&w.budget, lockedBy("dba", w.after(time.Hour)))
				w.want(blue, w.newPods("a")...)
				w.change(func() {
					old := w.budget
					goes(w)
					go w.queue.options.Dispatcher.BudgetChanged(old, w.budget)
				})
				w.wantRequests(t, request{pod: "uid-a"})
			})
		})
	}
}

// A locked budget takes no worker, no turn and no credit from anybody.
func TestLockedBudgetHoldsUpOnlyItsPods(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		pods := w.newPods("a", "b", "other", "free")
		w.change(func() {
			pods[2].Labels["app"], pods[3].Labels["app"] = "other", "none"
			w.second = budgetNamed("other", 1)
			w.second.Spec.Selector.MatchLabels["app"] = "other"
		})
		w.allow(0)
		w.want(blue, pods[0], pods[1])
		expect(t, "refused", w.refused(blue), "uid-a: "+exhausted, "uid-b: "+exhausted)

		// The lock comes with the opening: the oldest has got the turn, and may not use it.
		w.relock(&w.budget, lockedBy("dba", w.after(time.Hour)))
		w.allow(1)
		words := told("web", "dba", w.after(time.Hour))
		expect(t, "refused", w.refused(blue), "uid-a: "+words, "uid-b: "+words)
		w.want(green, pods[2], pods[3])
		expect(t, "left", w.left(), "a", "b")

		w.lock(&w.budget, "")
		expect(t, "the turn is taken", w.left(), "b")
		w.allow(1)
		expect(t, "and the next one", w.left())
	})
}

func TestWithdrawnPodDoesNotWaitForALock(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(1)
		w.lock(&w.budget, lockedBy("dba", w.after(time.Hour)))
		w.want(blue, pods...)
		w.want(blue)
		w.lock(&w.budget, "")
		w.pass(2 * time.Hour)
		w.wantRequests(t)
		expect(t, "refused", w.refused(blue))
	})
}
