package machine

import (
	"testing"
	"time"
)

// A drain seems to have used up its time by a skewed clock. It goes on, and is given up when
// the clock is trusted and the Machine is looked at again.
func TestSkewedClockGivesUpNoDrain(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		w.refuseEvictions(true)
		m := w.machine()
		m.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
		w.must(w.api.Update(t.Context(), m))
		w.must(w.api.Delete(t.Context(), w.machine()))
		w.settle()
		w.skewed = true
		time.Sleep(time.Hour)
		w.settle()
		if w.machine() == nil {
			t.Fatal("the Machine is gone")
		}
		w.skewed = false
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
	})
}
