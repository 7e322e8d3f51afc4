package drainlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

type life struct {
	t *testing.T
	s drainlock.Snapshot
}

func newLife(t *testing.T, changes ...change) *life {
	t.Helper()
	l := &life{t: t, s: snapshot(append([]change{both, live, boots("boot-1"), runs("db-0", "a"), runs("web-0", "a")}, changes...)...)}
	l.sees(0, settling)
	l.sees(2, "Held")
	return l
}

// sees changes what the node shows, lets the manager decide and act until it is at
// rest, and wants the condition to say so and these locks to be removed.
func (l *life) sees(second float64, says string, changes ...change) (removed []string) {
	l.t.Helper()
	for _, c := range append(changes, after(second)) {
		c(&l.s)
	}
	for range 10 {
		d := drainlock.Decide(l.s)
		if d.Status != nil {
			l.s.Record = l.s.Record.DeepCopy()
			l.s.Record.Status = *d.Status
		}
		if d.Step.Kind == drainlock.RemoveLock {
			removed = append(removed, d.Step.Budget.Name)
			budgetIs(d.Step.Budget.Name, unannotated)(&l.s)
			continue
		}
		if l.does(d.Step) {
			continue
		}
		c := meta.FindStatusCondition(l.s.Record.Status.Conditions, v1alpha1.ConditionLocked)
		if got := said(l.t, c); got != says {
			l.t.Errorf("at %v s it says %s, want %s", second, got, says)
		}
		return removed
	}
	l.t.Fatal("it never comes to rest")
	return nil
}

// does renews a lock, or writes or removes the promise on the node.
func (l *life) does(step drainlock.Step) bool {
	switch step.Kind {
	case drainlock.WriteLock:
		annotation(step.Budget.Name, step.Lock)(&l.s)
	case drainlock.WritePromise, drainlock.RemovePromise:
		promises(step)(&l.s)
	default:
		return false
	}
	return true
}

func (l *life) keeps(second float64, says string, changes ...change) {
	l.t.Helper()
	if removed := l.sees(second, says, changes...); removed != nil {
		l.t.Errorf("at %v s these locks were removed: %v", second, removed)
	}
}

func (l *life) frees(second float64, locks, says string, changes ...change) {
	l.t.Helper()
	if removed := strings.Join(l.sees(second, says, changes...), " "); removed != locks {
		l.t.Errorf("at %v s these locks were removed: %q, want %q", second, removed, locks)
	}
}

func boots(id string) change {
	return func(s *drainlock.Snapshot) {
		if s.Node == nil {
			s.Node = &corev1.Node{}
		}
		s.Node = s.Node.DeepCopy()
		s.Node.Status.NodeInfo.BootID = id
		s.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
}

func lost(s *drainlock.Snapshot) {
	s.Node = s.Node.DeepCopy()
	s.Node.Status.Conditions[0].Status = corev1.ConditionUnknown
}

func runs(name, container string) change {
	return podIs(name, func(pod *corev1.Pod) {
		setReady(pod, true)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", ContainerID: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamped(0)}},
		}}
	})
}

func over(s *drainlock.Snapshot) { s.Record.Spec.Complete = true }

func saidBack(s *drainlock.Snapshot) {
	s.Record = s.Record.DeepCopy()
	s.Record.Annotations = map[string]string{v1alpha1.BackAnnotation: "true"}
}

func reboots(expected int32) change {
	return recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.InPlace.ExpectedRebootCount = &expected })
}

const (
	releasing = "Releasing"
	returned  = "Returned"
)

// TestAShortRebootIsSeen: the node was away for less time than it takes to notice, so
// that it and its pods have looked ready all the time.
func TestAShortRebootIsSeen(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.keeps(10, releasing, over)
	l.keeps(20, releasing, boots("boot-2"))
	l.frees(21, "web", releasing, runs("web-0", "b"))
	l.keeps(22, releasing, unready("db-0"))
	l.frees(23, "db", releasing, runs("db-0", "b"))
}

// TestFactsSeenWithTheBootMayBeOlder: a container that was started anew
// just before the reboot, and one that was just after it, look the same. By then the
// kubelet has reported every pod.
func TestFactsSeenWithTheBootMayBeOlder(t *testing.T) {
	t.Parallel()
	t.Run("after the maintenance", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.keeps(10, releasing, over, boots("boot-2"), runs("db-0", "b"), runs("web-0", "b"))
		if again := drainlock.Decide(l.s).RequeueAfter; again != 2*time.Minute {
			t.Errorf("it is looked at again in %s, want 2m", again)
		}
		l.keeps(129.9, releasing)
		l.frees(130, "web db", releasing)
	})
	t.Run("during the maintenance", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.keeps(9, allHeld, runs("db-0", "b"), runs("web-0", "b"))
		l.keeps(10, allHeld, boots("boot-2"))
		if again := drainlock.Decide(l.s).RequeueAfter; again != 2*time.Minute {
			t.Errorf("it is looked at again in %s, want 2m", again)
		}
		l.keeps(129.9, allHeld)
		l.frees(130, "web db", returned)
	})
	t.Run("and a pod that came with it", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		renewed := podIs("db-0", func(pod *corev1.Pod) { pod.UID = "db-0-again" })
		listed := recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Pods[0].UID = "db-0-again" })
		l.keeps(10, allHeld, boots("boot-2"), renewed, listed)
		l.keeps(11, allHeld, runs("web-0", "b"))
		l.frees(12, "web db", returned, runs("db-0", "b"))
	})
}

// TestWithoutARebootReadinessCountsLater: a reboot that has begun is over by then, or a
// person says that there was none.
func TestWithoutARebootReadinessCountsLater(t *testing.T) {
	t.Parallel()
	t.Run("after the expected downtime", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.keeps(10, releasing, over)
		l.keeps(609.9, releasing)
		l.frees(610, "web db", releasing)
	})
	t.Run("not by a clock that is skewed", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.keeps(10, releasing, over)
		l.keeps(610, releasing, skewed)
		l.frees(611, "web db", releasing, func(s *drainlock.Snapshot) { s.ClockSkewed = false })
	})
	t.Run("at once if a person says so", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.keeps(10, releasing, over)
		l.frees(11, "web", releasing, saidBack, unready("db-0"))
	})
	t.Run("which is looked at again then", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.keeps(10, releasing, over)
		if again := drainlock.Decide(l.s).RequeueAfter; again != 600*time.Second {
			t.Errorf("it is looked at again in %s, want 10m", again)
		}
	})
	t.Run("at once if nothing was promised", func(t *testing.T) {
		t.Parallel()
		l := &life{t: t, s: snapshot(both, boots("boot-1"))}
		l.frees(1, "web db", releasing, over)
	})
	t.Run("later if the maintenance ends as soon as it was promised", func(t *testing.T) {
		t.Parallel()
		l := &life{t: t, s: snapshot(held, boots("boot-1"))}
		l.keeps(10, releasing, over)
	})
}

// TestANodeThatIsBackGivesItsLocksToOthers although its maintenance goes on.
func TestANodeThatIsBackGivesItsLocksToOthers(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.keeps(5, allHeld, lost)
	l.keeps(10, allHeld, boots("boot-2"))
	l.keeps(11, allHeld, runs("db-0", "b"))
	l.frees(12, "web db", returned, runs("web-0", "b"))
	if !drainlock.Held(l.s.Record) || !drainlock.ReturnedTime(l.s.Record).Equal(at(12)) {
		t.Error("a node that is back waits for locks")
	}
	pods := l.s.Record.Status.Boots.Pods
	l.keeps(13, returned, boots("boot-3"), unready("db-0"), runs("web-0", "c"))
	if diff := cmp.Diff(pods, l.s.Record.Status.Boots.Pods); diff != "" || drainlock.Booted(l.s.Record, l.s.Node) {
		t.Errorf("somebody still looks at what runs there (-want +got):\n%s", diff)
	}
	l.keeps(14, releasing, over)
}

func TestHowOftenANodeRebootsIsForTheMaintenanceToSay(t *testing.T) {
	t.Parallel()
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		l := newLife(t, reboots(2))
		l.keeps(9, allHeld, boots("boot-2"))
		l.keeps(10, allHeld, runs("db-0", "b"), runs("web-0", "b"))
		l.keeps(20, allHeld, boots("boot-3"))
		l.frees(21, "web db", returned, runs("db-0", "c"), runs("web-0", "c"))
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		l := newLife(t, reboots(0))
		l.keeps(9, allHeld, boots("boot-2"))
		l.keeps(10, allHeld, runs("db-0", "b"), runs("web-0", "b"))
		l.frees(20, "web db", returned, saidBack)
	})
	t.Run("not at all, as a person says", func(t *testing.T) {
		t.Parallel()
		newLife(t).frees(20, "web db", returned, saidBack)
	})
	t.Run("but not before the node is ready", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.keeps(20, allHeld, boots("boot-2"), lost)
		l.keeps(21, allHeld, runs("db-0", "b"), runs("web-0", "b"))
	})
	t.Run("and a node that begins to report its boot has not rebooted", func(t *testing.T) {
		t.Parallel()
		l := newLife(t, boots(""))
		l.keeps(10, allHeld, boots("boot-1"), runs("db-0", "b"), runs("web-0", "b"))
		l.keeps(20, allHeld, boots(""))
		l.keeps(29, allHeld, boots("boot-2"))
		l.frees(30, "web db", returned, runs("db-0", "c"), runs("web-0", "c"))
	})
}

// TestWhenTheMaintenanceWasOver is written down once, and not believed of the future.
func TestWhenTheMaintenanceWasOver(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.keeps(10, releasing, over)
	if got := l.s.Record.Status.CompleteTime; !got.Time.Equal(at(10)) {
		t.Errorf("it was over at %s", got)
	}
	tomorrow := stamped(24 * 3600)
	l.keeps(10, releasing, recordIs(func(r *v1alpha1.DrainRecord) { r.Status.CompleteTime = &tomorrow }))
	l.s.Record.Spec.Complete = false
	if d := drainlock.Decide(l.s); d.Status == nil || d.Status.CompleteTime != nil {
		t.Error("a maintenance that goes on is over")
	}
}

// TestFactsOfANodeAreBounded: whoever has its credentials writes its status.
func TestFactsOfANodeAreBounded(t *testing.T) {
	t.Parallel()
	l := newLife(t, boots(strings.Repeat("b", 1<<20)))
	if got := len(l.s.Record.Status.Boots.BootID); got != 128 {
		t.Errorf("a boot ID of %d bytes is recorded", got)
	}
	for i := range 20 {
		l.keeps(float64(10+i), allHeld, boots(fmt.Sprint("boot-", i)))
	}
	if got := l.s.Record.Status.Boots.RebootCount; got != 10 {
		t.Errorf("%d reboots are counted", got)
	}
}
