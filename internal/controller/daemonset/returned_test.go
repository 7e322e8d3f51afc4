package daemonset

import (
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/test/difference"
)

// Without the webhook a DaemonSet that tolerates everything makes its pod again at
// once. The node is not kept busy with that; its next maintenance begins anew.
func TestPodsThatComeBackAreDeletedLessAndLessOften(t *testing.T) {
	t.Parallel()
	m := aMaintenance()
	m.UID = "first"
	w := newWorld(t, aNode(1000), m)
	r := w.evacuator()
	arrive := func(name string) (wait time.Duration) {
		t.Helper()
		pod := aPod(name)
		e := asked(pod)
		w.must(w.api.Create(t.Context(), pod))
		w.must(w.api.Create(t.Context(), e))
		wait = w.reconcile(r, e)
		if told := strings.Contains(w.message(e), name+" came back to its node during the maintenance"); told != (wait > 0) {
			t.Errorf("message is %q with %s to wait", w.message(e), wait)
		}
		w.clock.Step(wait)
		w.reconcile(r, e)
		if _, there := read(w, pod); there {
			t.Fatalf("pod %s is still there after %s", name, wait)
		}
		return wait
	}

	waits := []time.Duration{arrive("log-a"), arrive("log-b"), arrive("log-c"), arrive("log-d")}
	w.must(w.api.Delete(t.Context(), m))
	again := aMaintenance()
	again.UID = "second"
	w.must(w.api.Create(t.Context(), again))
	waits = append(waits, arrive("log-e"))

	difference.None(t, "waits", []time.Duration{0, 1 * time.Second, 2 * time.Second, 4 * time.Second, 0}, waits)
}
