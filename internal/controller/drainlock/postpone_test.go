package drainlock

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A budget that changes all the time does not have every node that waits for it
// written as often, and what is written in the end is what is so then.
func TestFlappingBudgetIsReportedOnceASecond(t *testing.T) {
	t.Parallel()
	record := aRecord("one", "web")
	record.Spec.Pods = append(record.Spec.Pods, record.Spec.Pods[0])
	record.Spec.Pods[1].Name, record.Spec.Pods[1].UID = "web-2", "uid-of-web-2"
	second := aPod("web", "one")
	second.Name, second.UID = "web-2", "uid-of-web-2"
	b := aBudget("web", 0)
	b.Status.DesiredHealthy = 1
	w := newWorld(t, record, aPod("web", "one"), second, b)
	n := w.nodes()
	reconcile := func() time.Duration {
		result, err := n.Reconcile(t.Context(), requestOf("one"))
		w.must(err)
		return result.RequeueAfter
	}
	reconcile()
	for flap := range 45 {
		w.clock.Step(100 * time.Millisecond)
		stored, _ := read(w, b)
		stored.Status.DisruptionsAllowed = int32(1 - flap%2)
		w.must(w.api.Status().Update(t.Context(), stored))
		reconcile()
	}
	writes := 0
	for _, write := range w.api.Writes() {
		if strings.HasPrefix(write, "update status of DrainRecord") {
			writes++
		}
	}
	if writes > 6 {
		t.Errorf("the status was written %d times in 4.5 seconds", writes)
	}
	if due := reconcile(); due <= 0 || due > messageInterval {
		t.Errorf("what is not told yet is due in %s", due)
	}
	w.clock.Step(messageInterval)
	reconcile()
	stored, _ := read(w, record)
	const want = "PodDisruptionBudget shop/web allows 1 of the 2 disruptions required by the pods that stay."
	if got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionLocked).Message; got != want {
		t.Errorf("condition says %q, want %q", got, want)
	}
}
