package evacuation

import (
	"fmt"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// AttemptInterval is the least time between two recorded calls of the eviction API for one pod.
	AttemptInterval = 30 * time.Second
	// attemptPatience is the time for which after the last call its request stands: five
	// minutes, and as long as the last calls may have gone without a note.
	attemptPatience = 5*time.Minute + AttemptInterval
)

// lastAttempt returns when somebody last called the eviction API for the pod. What
// cannot be read or believed counts from the creation of the object.
func lastAttempt(s Snapshot) time.Time {
	noted, err := time.Parse(time.RFC3339, s.Evacuation.Annotations[v1alpha1.EvictionAttemptAnnotation])
	if err != nil || noted.After(s.Now.Add(MaxClockSkew)) {
		return s.Evacuation.CreationTimestamp.Time
	}
	return noted
}

// untilWithdrawal returns how long the request of those who call the eviction API
// still stands; called is false if there is none, or if the pod leaves anyway.
func untilWithdrawal(s Snapshot) (left time.Duration, called bool) {
	if !slices.Contains(s.Evacuation.Finalizers, v1alpha1.EvictionInstigator) {
		return 0, false
	}
	if gone(s) || podclass.Terminal(s.Pod) || s.Pod.DeletionTimestamp != nil {
		return 0, false
	}
	return lastAttempt(s).Add(attemptPatience).Sub(s.Now), true
}

// withdraw takes back the request of those who have stopped calling the eviction
// API. Other instigators' stay.
func withdraw(s Snapshot) Decision {
	message := fmt.Sprintf("The eviction API has not been called for pod %s since %s. The request is withdrawn.",
		s.Pod.Name, lastAttempt(s).UTC().Format(time.RFC3339))
	return Decision{
		State: StateWithdrawn, Message: message,
		DropFinalizers: []string{v1alpha1.EvictionInstigator},
		Events:         []event.Event{event.EvictionWithdrawn(s.Evacuation, message)},
	}
}
