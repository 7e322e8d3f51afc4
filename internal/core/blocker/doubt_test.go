package blocker_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// An evacuator that only goes on because nobody believes the clock blocks its pod.
func TestTheClockBlocks(t *testing.T) {
	doubted := func(f *known) {
		evacuator(f)
		f.Evacuation.Status.Conditions = append(f.Evacuation.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionClockSkewed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClockSkewed, Message: "The turn goes on. The clock is wrong.",
		})
	}
	check(t, map[string]story{
		"an evacuator that should have lost its turn": {
			facts(doubted),
			v1alpha1.Blocker{
				Type: v1alpha1.BlockerClockSkewed, Object: mover, PodCount: 1, SinceTime: ago(60e9),
				Message:    "The turn goes on. The clock is wrong.",
				Suggestion: "See what time it is on the machines of the manager and of the API server, and whether it comes from somewhere: timedatectl",
			},
		},
	})
}
