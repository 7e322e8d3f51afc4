package evictionrequest_test

import (
	"testing"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
)

// An intent that comes after the last word of the last responder, and before the
// controller has seen that, is as new as one that comes a moment later.
func TestAnIntentThatComesWithTheLastWordIsTried(t *testing.T) {
	t.Parallel()
	for name, comes := range map[string]func(*stage) *lifecyclev1alpha1.EvictionRequest{
		"of another requester": func(s *stage) *lifecyclev1alpha1.EvictionRequest { return s.ask("example.com/b", s.pods["web-0"]) },
		"of the same, meant again": func(s *stage) *lifecyclev1alpha1.EvictionRequest {
			again := s.requests["example.com-a-web-0"]
			s.withdraw(again)
			s.intend(again, lifecyclev1alpha1.EvictionRequestIntentEviction)
			return again
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.ask("example.com/a", s.pod("web-0"))
			s.settle()
			s.report("pod-1-web-0", evictor, true)
			late := comes(s)
			s.settle()
			s.reasons("the late request", late.Status.Conditions, awaiting)
			s.expect("the first Eviction", turns(s.eviction("pod-1-web-0")), evictor+" Completed")
			s.expect("the second Eviction", turns(s.eviction("pod-2-web-0")), evictor+" Active")

			s.report("pod-2-web-0", evictor, true)
			s.settle()
			if len(s.evictions) != 2 {
				t.Errorf("%d Evictions, want no other while nobody asks anew", len(s.evictions))
			}
		})
	}
}
