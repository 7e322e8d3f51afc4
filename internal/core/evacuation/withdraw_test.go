package evacuation_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

const caller = v1alpha1.EvictionInstigator

// called is an evacuation in the name of those who call the eviction API, who
// last did so at the offset.
func called(offset time.Duration) scene { return noted(now.Add(offset).Format(time.RFC3339)) }

func noted(attempt string) scene {
	return func(s *evacuation.Snapshot) {
		s.Evacuation.Finalizers = []string{caller}
		s.Evacuation.Annotations[v1alpha1.EvictionAttemptAnnotation] = attempt
	}
}

func created(offset time.Duration) scene {
	return func(s *evacuation.Snapshot) { s.Evacuation.CreationTimestamp = *at(offset) }
}

func TestARequestOfTheEvictionAPIIsWithdrawn(t *testing.T) {
	const long = 5*time.Minute + 30*time.Second
	withdrawn := verdict{State: evacuation.StateWithdrawn, Drop: []string{caller}, Events: "EvictionWithdrawn"}
	moves := func(lookAgain time.Duration) verdict {
		return verdict{State: evacuation.StateEvacuating, LookAgain: lookAgain}
	}
	turn := active("mover.example.com", at(0))
	check(t, map[string]story{
		"not before its time": {of(webPod(), turn, called(-long+time.Second)), moves(time.Second)},
		"at its time":         {of(webPod(), turn, called(-long)), withdrawn},
		"in spite of other finalizers": {
			of(webPod(), turn, called(-time.Hour), finalizers(ours, caller, "example.com/audit")), withdrawn,
		},
		"whoever else asks, goes on asking": {
			of(webPod(), turn, called(-time.Hour), finalizers(ours)),
			moves(30 * time.Minute),
		},
		"before the evacuator's deadline, the sooner counts": {
			of(webPod(), active("mover.example.com", at(-29*time.Minute)), called(0)), moves(time.Minute),
		},
		"until then the eviction goes on": {
			of(barePod(), called(-time.Minute)),
			verdict{
				State: evacuation.StateEvicting, Evict: true, LookAgain: long - time.Minute,
			},
		},
		"not while the pod terminates": {
			of(webPod(), called(-time.Hour), terminating),
			verdict{State: evacuation.StateTerminating},
		},
		"unreadable: from the creation": {
			of(webPod(), turn, created(-long), noted("yesterday")), withdrawn,
		},
		"in the future: from the creation": {
			of(webPod(), turn, created(-long), called(2*time.Minute)), withdrawn,
		},
	})
}
