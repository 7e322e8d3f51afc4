package machine

import (
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A drain seems to have used up its time by a clock that is not believed. It goes on,
// says why, and is given up when the clock is believed and the Machine is looked at again.
func TestNoDrainIsGivenUpByAClockThatIsNotBelieved(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		w.refuseEvictions(true)
		m := w.machine()
		m.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
		w.must(w.api.Update(t.Context(), m))
		w.must(w.api.Delete(t.Context(), w.machine()))
		w.settle()
		w.doubt = "The manager's clock is wrong."
		time.Sleep(time.Hour)
		w.settle()
		if told := w.condition(v1alpha1.ConditionClockSkewed); w.machine() == nil || !strings.HasSuffix(told, w.doubt) {
			t.Fatalf("the Machine is there: %v, and says %q, want it to wait for its pods and to say why", w.machine() != nil, told)
		}
		w.doubt = ""
		if again := w.manager.held(t.Context()); len(again) != 1 {
			t.Errorf("looked at again are %v, want the Machine that is being deleted", again)
		}
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
	})
}
