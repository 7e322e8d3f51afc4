package nodemaintenance

import (
	"strings"
	"testing"
	"time"
)

func TestAPassThatThinksForLongRestsAsLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"))
	r := w.manager()
	const reading = 10 * time.Millisecond
	w.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "list ") {
			w.clock.Step(reading)
		}
		return nil
	}
	const thinking = 7 * reading // maintenances, nodes, evacuations, budgets, drain records, rules, the pods of one

	for _, step := range []struct {
		after     time.Duration
		wantWrite bool
		wantDue   time.Duration
	}{
		{wantWrite: true},
		{after: 20 * time.Millisecond, wantDue: thinking - 20*time.Millisecond},
		{after: thinking, wantWrite: true},
	} {
		w.clock.Step(step.after)
		before := len(w.api.Writes())
		if step.wantWrite {
			node := w.node("one")
			node.Spec.Unschedulable = false
			w.must(w.api.Update(w.t.Context(), node))
		}
		result, err := r.Reconcile(w.t.Context(), pass{})
		if err != nil {
			t.Fatalf("reconcile: %v", err)
		}
		if wrote := len(w.api.Writes()) > before; wrote != step.wantWrite {
			t.Errorf("after %s the pass wrote %t, want %t", step.after, wrote, step.wantWrite)
		}
		if step.wantDue != 0 && result.RequeueAfter != step.wantDue {
			t.Errorf("after %s the next pass is due in %s, want %s", step.after, result.RequeueAfter, step.wantDue)
		}
	}
}
