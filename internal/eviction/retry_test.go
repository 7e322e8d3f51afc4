package eviction

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// hour is how long the stories of retries go on.
const hour = time.Hour

// becomes sets whether pods are ready, as the cache shows them.
func (w *world) becomes(status corev1.ConditionStatus, pods ...*corev1.Pod) {
	w.change(func() {
		for _, pod := range pods {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		}
	})
}

// newCrowd adds many pods of the application web.
func (w *world) newCrowd(count int) []*corev1.Pod {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%d", i)
	}
	return w.newPods(names...)
}

// asksSince is how many requests have reached the API server after the first ones.
func (w *world) asksSince(first int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests) - first
}

func TestOnePodAsksAClosedBudgetForAllOfThem(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newCrowd(500)
		w.becomes(corev1.ConditionTrue, pods...)
		w.allow(0)
		w.change(func() { w.latency = 20 * time.Millisecond })
		w.want(blue, pods...)
		w.pass(20 * time.Second)
		if first := w.asksSince(0); first != len(pods) {
			t.Fatalf("%d pods have asked, want each of %d once, so that it can say what refuses it", first, len(pods))
		}
		w.pass(hour)
		most, least := int(hour/safety), int(hour/time.Minute)
		if asks := w.asksSince(len(pods)); asks < least || asks > most {
			t.Errorf("the closed budget was asked %d times in an hour, want %d to %d", asks, least, most)
		}
		w.allow(int32(len(pods)))
		w.pass(time.Minute)
		expect(t, "left when the budget opens", w.left())
	})
}

// A budget may let pods go that are not ready while it keeps all others, and the other
// way round it says nothing of them.
func TestPodsThatAreNotReadyAskForThemselves(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newCrowd(300)
		w.becomes(corev1.ConditionTrue, pods...)
		w.allow(0)
		w.want(blue, pods...)
		w.pass(time.Second)
		w.becomes(corev1.ConditionFalse, pods[200])
		w.pass(time.Minute)
		if asked := len(w.asked("pod-200")); asked < 2 {
			t.Error("a pod that is not ready any more has not asked within a minute whether it may go")
		}
		w.becomes(corev1.ConditionFalse, pods[150:]...)
		w.pass(time.Minute)
		before := w.asksSince(0)
		w.pass(hour)
		if asks, most := w.asksSince(before), 2*int(hour/safety); asks > most {
			t.Errorf("the closed budget was asked %d times in an hour, want at most %d", asks, most)
		}
	})
}

func TestPodsOfAClosedBudgetAreTriedAgainWithoutAnySign(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		pods := w.newCrowd(20)
		w.becomes(corev1.ConditionTrue, pods...)
		w.allow(0)
		w.want(blue, pods...)
		w.change(func() { w.budget.Status.DisruptionsAllowed = 20 }) // The watch has missed it.
		w.pass(time.Minute)
		expect(t, "left a minute later", w.left())
	})
}
