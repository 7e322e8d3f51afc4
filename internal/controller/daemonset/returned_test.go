package daemonset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Without the webhook a DaemonSet that tolerates everything makes its pod again at
// once. The node is not kept busy with that; its next maintenance begins anew.
func TestPodsThatComeBackAreDeletedLessAndLessOften(t *testing.T) {
	t.Parallel()
	node := aNode(1000)
	w := newWorld(t, node, aMaintenance())
	r := w.evacuator()
	arrive := func(name string) (wait time.Duration) {
		t.Helper()
		pod := aPod(name)
		e := asked(pod)
		w.must(w.api.Create(t.Context(), pod))
		w.must(w.api.Create(t.Context(), e))
		wait = w.reconcile(r, e)
		w.clock.Step(wait)
		w.reconcile(r, e)
		if _, there := read(w, pod); there {
			t.Fatalf("pod %s is still there after %s", name, wait)
		}
		return wait
	}

	waits := []time.Duration{arrive("log-a"), arrive("log-b"), arrive("log-c"), arrive("log-d")}
	stored, _ := read(w, node)
	stored.Annotations[v1alpha1.CordonAnnotation] = `{"wasUnschedulable":false,"holders":["next"]}`
	w.must(w.api.Update(t.Context(), stored))
	waits = append(waits, arrive("log-e"))

	if diff := cmp.Diff([]time.Duration{0, 1 * time.Second, 2 * time.Second, 4 * time.Second, 0}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}
