package blocker

import (
	"fmt"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
)

// unclear explains a pod with an unknown treatment, unless it is already evacuated.
func unclear(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Treatment.Cause == "" || f.Evacuation != nil {
		return v1alpha1.Blocker{}, false
	}
	b := one(v1alpha1.BlockerDrainRuleUnclear, f.Treatment.Object, later(f.Pod.CreationTimestamp.Time, f.DrainStarted))
	b.Message = "Cannot determine how to drain the pod: " + f.Treatment.Cause
	b.Suggestion = command.Of("To decide about this pod alone, retain it or let it complete: kubectl -n %s label pod %s %s=skip (or wait-completed)",
		f.Pod.Namespace, f.Pod.Name, v1alpha1.DrainLabel)
	return b, true
}

// waitedFor explains a pod that is left to finish by itself.
func waitedFor(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Treatment.Behavior != v1alpha1.DrainBehaviorWaitCompleted {
		return v1alpha1.Blocker{}, false
	}
	b := one(v1alpha1.BlockerWaitingForCompletion, ofOwner(f.Pod), later(f.Pod.CreationTimestamp.Time, f.DrainStarted))
	b.Message = fmt.Sprintf("The pod is left to complete by itself, as %s asks; the drain waits for it.", f.Treatment.Reason)
	b.Suggestion = command.Of("If it need not finish, evacuate it like any other: kubectl -n %s label pod %s %s-",
		f.Pod.Namespace, f.Pod.Name, v1alpha1.DrainLabel)
	if rule := ObjectText(f.Treatment.Object); rule != "" {
		b.Suggestion = command.Of("If it need not finish: kubectl -n %s delete pod %s.", f.Pod.Namespace, f.Pod.Name) +
			" If that goes for all of its kind, change " + rule + "."
	}
	return b, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
