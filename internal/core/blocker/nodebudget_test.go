package blocker

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/test/golden"
)

// A node waits for a budget before any of its pods is counted.
func TestNodeBudgetThatHoldsANodeBlocks(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]nodebudget.Hold{
		"named":        {Budget: "web", Message: "Node one waits."},
		"for a shell":  {Budget: "$(reboot)", Message: "Node one waits."},
		"nobody knows": {Message: "The NodeBudgets could not be read: timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			b := NodeBudget(&hold)
			if b.Type != v1alpha1.BlockerNodeBudget || b.PodCount != 0 || b.SinceTime != nil || b.Message != hold.Message {
				t.Errorf("it is %+v", b)
			}
			if want := (v1alpha1.BlockerObject{APIVersion: "ebbtide.dev/v1alpha1", Kind: "NodeBudget", Name: hold.Budget}); b.Object != want {
				t.Errorf("it is by %+v, want %+v", b.Object, want)
			}
			golden.Message(t, b.Suggestion)
		})
	}
}
