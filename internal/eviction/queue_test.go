package eviction

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

func TestABudgetThatOpensLetsTheNextPodGoAtOnce(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a", "b", "c")
		w.allow(0)
		w.want(blue, pods...)
		expect(t, "refused", w.refused(blue), "uid-a: "+exhausted, "uid-b: "+exhausted, "uid-c: "+exhausted)
		w.allow(1)
		expect(t, "the oldest has left", w.left(), "b", "c")
		expect(t, "refused", w.refused(blue), "uid-b: "+exhausted, "uid-c: "+exhausted)
		w.allow(2)
		expect(t, "nobody is left", w.left())
		if took := time.Since(w.begin); took != 0 {
			t.Errorf("it took %s, want no time", took)
		}
		want := map[evacuation.Result]float64{evacuation.Evicted: 3, evacuation.Budgeted: 3}
		if diff := cmp.Diff(want, w.counts(t)); diff != "" {
			t.Errorf("counted answers (-want +got):\n%s", diff)
		}
	})
}

func TestRefusedPodHoldsUpNoOthers(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		pods := w.newPods("a", "b", "c", "d")
		w.change(func() {
			w.hanging["a"] = true
			w.answers["b"] = answered(403, denial)
		})
		w.want(blue, pods...)
		expect(t, "left", w.left(), "a", "b")
		expect(t, "refused", w.refused(blue), "uid-b: "+denial)
		w.pass(time.Minute)
		if tries := len(w.asked("b")); tries < 4 || tries > 10 {
			t.Errorf("tried %d times in a minute, want some", tries)
		}
		w.pass(time.Hour)
		w.change(func() { delete(w.answers, "b") })
		w.pass(longestPause)
		expect(t, "left when nothing refuses any more", w.left(), "a")
		expect(t, "refused", w.refused(blue))
	})
}

// Regression: eviction of a re-created pod of the same name.
func TestAPodThatCameAfterAnotherOfItsNameIsNotEvicted(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("db-0")
		w.change(func() { w.answers["db-0"] = answered(500, "etcd is busy") })
		w.want(blue, pods...)
		w.change(func() {
			delete(w.answers, "db-0")
			after := pods[0].DeepCopy()
			after.UID = "uid-after"
			w.pods[client.ObjectKeyFromObject(after)] = after
		})
		w.pass(time.Hour)
		expect(t, "left", w.left(), "db-0")
		expect(t, "nothing is said of the old one", w.refused(blue))
		if len(w.requests) != 1 || w.requests[0].pod != "uid-db-0" {
			t.Errorf("requests %+v, want one for the old pod", w.requests)
		}
	})
}

func TestLeavingOwnerPassesItsTurnsOn(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a", "b", "c")
		w.allow(0)
		w.want(blue, pods[0], pods[1])
		w.want(green, pods[2])
		w.want(blue, pods[1])
		expect(t, "refused", w.refused(blue), "uid-b: "+exhausted)
		w.want(blue)
		expect(t, "refused", w.refused(blue))
		w.allow(1)
		expect(t, "left", w.left(), "a", "b")
		w.allow(5)
		w.pass(time.Hour)
		expect(t, "left", w.left(), "a", "b")

		w.want(green, pods[0])
		expect(t, "left when another owner wants it", w.left(), "b")
	})
}

// One that the budget waits for would hold the turn of all others.
func TestPodThatIsDroppedDuringALookLeavesTheDispatcher(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(1)
		w.onLook = func() { w.queue.Want(blue, nil, nil) }
		w.want(blue, pods...)
		if waiting := w.queue.options.Dispatcher.waiting; len(waiting) > 0 {
			t.Errorf("the dispatcher has %v, which nobody wants", waiting)
		}
	})
}

func TestPodIsEvictedWithTheGracePeriodThatIsWanted(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.queue.Want(blue, w.newPods("a"), ptr.To[int64](1))
		w.want(green, w.newPods("b")...)
		if a, b := w.asked("a"), w.asked("b"); len(a) != 1 || a[0].grace != "1" || len(b) != 1 || b[0].grace != "" {
			t.Errorf("requests %+v and %+v, want one second and the pod's own", a, b)
		}
	})
}

func TestOwnersTakeTurns(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.change(func() { w.latency = 10 * time.Millisecond })
		many, few := make([]string, 1000), make([]string, 10)
		for i := range many {
			many[i] = fmt.Sprintf("many-%d", i)
		}
		for i := range few {
			few[i] = fmt.Sprintf("few-%d", i)
		}
		w.want(blue, w.newPods(many...)...)
		w.want(green, w.newPods(few...)...)
		w.pass(150 * time.Millisecond)
		for _, name := range few {
			if len(w.asked(name)) == 0 {
				t.Errorf("%s has to wait for an owner of many pods", name)
			}
		}
		w.pass(10 * time.Second)
		expect(t, "left", w.left())
	})
}

// The turn of a budget does not wait in the queue of its pod's owner.
func TestAPodThatHasItsTurnGoesBeforeOthers(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		pods := w.newPods("a", "b")
		w.allow(0)
		w.want(blue, pods[0])
		w.want(green, pods[1])
		many := make([]string, 1000)
		for i := range many {
			many[i] = fmt.Sprintf("many-%d", i)
		}
		free := w.newPods(many...)
		w.change(func() {
			w.latency = 10 * time.Millisecond
			for _, pod := range free {
				pod.Labels["app"] = "free"
			}
		})
		w.want(blue, append(free, pods[0])...)
		w.allow(2)
		w.pass(50 * time.Millisecond)
		if len(w.asked("a")) != 2 || len(w.asked("b")) != 2 {
			t.Errorf("requests for a at %v and b at %v, want one at the opening", w.asked("a"), w.asked("b"))
		}
	})
}

func TestNewsAreFew(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		names := make([]string, 100)
		for i := range names {
			names[i] = fmt.Sprintf("pod-%d", i)
			w.answers[names[i]] = answered(403, denial)
		}
		w.want(blue, w.newPods(names...)...)
		expect(t, "news that are not settled", w.heard())
		w.pass(ReportAfter)
		expect(t, "news of many refusals", w.heard(), "blue")
		w.pass(time.Minute)
		expect(t, "news of the same words", w.heard())
		w.change(func() { w.answers["pod-7"] = answered(403, "not on a Saturday either") })
		w.pass(time.Hour)
		expect(t, "news of other words", w.heard(), "blue")
		w.change(func() { delete(w.answers, "pod-7") })
		w.pass(time.Hour)
		expect(t, "news of an eviction", w.heard(), "blue")
	})
}

func TestThrottlingIsNotReportedAtFirst(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.change(func() { w.answers["a"] = answered(409, "try again") })
		w.want(blue, w.newPods("a")...)
		w.pass(500 * time.Millisecond)
		expect(t, "refused", w.refused(blue))
		w.pass(time.Minute)
		expect(t, "refused for long", w.refused(blue), "uid-a: try again")
		expect(t, "news", w.heard(), "blue")
	})
}

func TestAPodThatIsOnItsWayIsLeftAlone(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("slow", "stuck")
		w.change(func() { w.lingering = true })
		w.want(blue, pods...)
		w.pass(safety / 2)
		w.change(func() {
			w.pods[client.ObjectKeyFromObject(pods[0])].DeletionTimestamp = &metav1.Time{Time: time.Now()}
		})
		w.pass(safety)
		w.want(blue, pods...)
		if tries := len(w.asked("slow")); tries != 1 {
			t.Errorf("a pod that terminates is evicted %d times, want once", tries)
		}
		asked := w.asked("stuck")
		if len(asked) != 2 || asked[1].at != safety {
			t.Errorf("a pod that does not terminate is evicted at %+v, want twice", asked)
		}
	})
}

// Regression: whoever found the last pod of a node by asking the API server, and
// wanted it before the cache had it, waited for its eviction for ever.
func TestAPodThatTheCacheDoesNotKnowYetIsEvictedAsSoonAsItDoes(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a", "db-0")
		before := pods[1].DeepCopy()
		before.UID = "uid-before"
		w.change(func() {
			delete(w.pods, client.ObjectKeyFromObject(pods[0]))
			w.pods[client.ObjectKeyFromObject(before)] = before
		})
		w.want(blue, pods...)
		w.pass(5 * time.Second)
		expect(t, "another one of the name is left alone", w.left(), "db-0")
		w.change(func() {
			for _, pod := range pods {
				w.pods[client.ObjectKeyFromObject(pod)] = pod
			}
		})
		w.want(blue, pods...)
		w.pass(unreadPause)
		expect(t, "left", w.left())
	})
}

func TestFailedReadBacksOff(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a", "b")
		w.change(func() { w.unreadable = "a" })
		w.want(blue, pods...)
		w.pass(time.Minute)
		expect(t, "left", w.left(), "a")
		w.change(func() { w.unreadable = "" })
		w.pass(unreadPause)
		expect(t, "left", w.left())
	})
}

func TestATurnOfAPodThatCannotBeReadGoesToTheNextOne(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a", "b")
		w.allow(0)
		w.want(blue, pods...)
		w.change(func() { w.unreadable = "a" })
		w.allow(1)
		expect(t, "left", w.left(), "a")
	})
}

func TestWantingTheSameAgainChangesNothing(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newPods("a")
		w.allow(0)
		for range 100 {
			w.want(blue, pods...)
		}
		w.pass(safety / 2)
		if tries := len(w.asked("a")); tries != 1 {
			t.Errorf("tried %d times, want once", tries)
		}
	})
}

// The lines of the deletion-process page, "Observability".
func TestLogShowsEvictions(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.change(func() { w.answers["b"] = answered(403, denial) })
		w.want(blue, w.newPods("a", "b")...)
		where := `"owner"="machines/blue" "Pod"="shop/%s" "Node"="node-1"`
		expect(t, "log", w.log,
			`"level"=4 "msg"="Evicting Pod" `+fmt.Sprintf(where, "a"),
			`"level"=0 "msg"="Pod eviction successfully triggered" `+fmt.Sprintf(where, "a"),
			`"level"=4 "msg"="Evicting Pod" `+fmt.Sprintf(where, "b"),
			fmt.Sprintf(`"level"=1 "msg"="Pod eviction failed" `+where+` "code"=403 "message"=%q`, "b", denial))
	})
}

// Our own webhook has a Machine's drain wait for the evacuators of a pod. It
// forgets who has not called for five minutes.
func TestAPostponedEvictionIsAskedForCalmlyButNotForgotten(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		const moving = `admission webhook "evictions.ebbtide.dev" denied the request: evacuation in progress: mover.example.com`
		w.change(func() { w.answers["a"] = answered(429, moving) })
		w.want(blue, w.newPods("a")...)
		w.pass(ReportAfter)
		expect(t, "refused", w.refused(blue), "uid-a: "+moving)
		expect(t, "news", w.heard(), "blue")
		w.pass(20 * time.Minute)
		asked := w.asked("a")
		if len(asked) > 70 {
			t.Errorf("asked %d times in 20 minutes, want about two a minute", len(asked))
		}
		for i, r := range asked[1:] {
			if wait := r.at - asked[i].at; wait > evacuation.AttemptInterval {
				t.Errorf("asked again after %s, want at most %s", wait, evacuation.AttemptInterval)
			}
		}
		w.change(func() { clear(w.pods) })
		w.pass(time.Hour)
		expect(t, "refused when the evacuator has moved it", w.refused(blue))
		if after := len(w.asked("a")); after != len(asked) {
			t.Errorf("asked %d times for a pod that is gone", after-len(asked))
		}
	})
}

func TestPodsWantedBeforeTheStartAreEvictedThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.want(blue, w.newPods("a", "b")...)
		w.allow(2)
		expect(t, "left", w.left(), "a", "b")
		end := w.start()
		expect(t, "left after the start", w.left())
		end()
		w.newPods("c")
		w.want(blue, w.pods[types.NamespacedName{Namespace: "shop", Name: "c"}])
		expect(t, "left after the end", w.left(), "c")
	})
}

func TestTheEndDoesNotWaitForAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.hanging["a"] = true
		end := w.start()
		w.want(blue, w.newPods("a", "b")...)
		end()
		expect(t, "left", w.left(), "a", "b")
		expect(t, "an eviction without an answer is no refusal", w.refused(blue))
	})
}
