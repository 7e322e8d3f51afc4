package blocker_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

func TestExplainBeginsWithObject(t *testing.T) {
	for want, object := range map[string]v1alpha1.BlockerObject{
		"PodDisruptionBudget/shop/web: No. Wait.": seenBudget,
		"Node/node-one: No. Wait.":                node,
		"Evacuator/mover.example.com: No. Wait.":  mover,
		"No. Wait.":                               {},
	} {
		b := v1alpha1.Blocker{Object: object, Message: "No.", Suggestion: "Wait."}
		if got := blocker.Explain(b); got != want {
			t.Errorf("the blocker reads %q, want %q", got, want)
		}
	}
}
