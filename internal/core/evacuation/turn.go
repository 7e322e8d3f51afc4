package evacuation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// MaxClockSkew limits how far in the future an accepted report of progress may lie.
const MaxClockSkew = time.Minute

// takeTurn chooses between the active evacuator, the next one and the eviction.
func takeTurn(s Snapshot) Decision {
	status := &s.Evacuation.Status
	if status.ActiveEvacuatorClass == "" {
		return tellProblems(s, takeFirstTurn(s))
	}
	if !status.ActiveEvacuatorCompleted && !believable(s) {
		return restart(s)
	}
	why, over := turnOver(s)
	if !over {
		return keep(s)
	}
	if successor := next(s.Evacuation); successor != "" {
		return activate(s, successor, why)
	}
	return evict(s, why)
}

func takeFirstTurn(s Snapshot) Decision {
	if len(s.Evacuation.Spec.Evacuators) == 0 {
		return evict(s, "no evacuator is registered on it")
	}
	return activate(s, next(s.Evacuation), "")
}

// tellProblems adds an event about ignored registrations to a decision that writes.
func tellProblems(s Snapshot, d Decision) Decision {
	if len(s.Problems) == 0 || d.Status == nil && !d.Evict {
		return d
	}
	words := make([]string, len(s.Problems))
	for i, problem := range s.Problems {
		words[i] = problem.Message
	}
	message := fmt.Sprintf("Not every evacuator of pod %s is understood: %s.", s.Pod.Name, strings.Join(words, "; "))
	d.Events = append(d.Events, event.EvacuatorsIgnored(s.Evacuation, message))
	return d
}

// next returns the evacuator after the active one, the first without one, and "" after the last.
func next(e *v1alpha1.Evacuation) string {
	turns, active := inTurn(e, e.Status.ActiveEvacuatorClass)
	if active+1 >= len(turns) {
		return ""
	}
	return turns[active+1].EvacuatorClass
}

// inTurn returns the evacuators in order and the index of one of them; -1 if it is not listed.
func inTurn(e *v1alpha1.Evacuation, class string) (turns []v1alpha1.Evacuator, at int) {
	turns = slices.SortedFunc(slices.Values(e.Spec.Evacuators), func(a, b v1alpha1.Evacuator) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.EvacuatorClass, b.EvacuatorClass))
	})
	at = slices.IndexFunc(turns, func(candidate v1alpha1.Evacuator) bool { return candidate.EvacuatorClass == class })
	return turns, at
}

func believable(s Snapshot) bool {
	progress := s.Evacuation.Status.EvacuationProgressTimestamp
	return progress != nil && (s.ClockSkewed || !progress.After(s.Now.Add(MaxClockSkew)))
}

// turnOver reports whether and why the turn of the active evacuator is over.
func turnOver(s Snapshot) (why string, over bool) {
	status := &s.Evacuation.Status
	if status.ActiveEvacuatorCompleted {
		return fmt.Sprintf("evacuator %s completed and the pod is still there", status.ActiveEvacuatorClass), true
	}
	if s.ClockSkewed || s.Now.Before(s.deadline()) {
		return "", false
	}
	return silence(status), true
}

// silence says since when the active evacuator has said nothing.
func silence(status *v1alpha1.EvacuationStatus) string {
	return fmt.Sprintf("evacuator %s has reported no progress since %s",
		status.ActiveEvacuatorClass, status.EvacuationProgressTimestamp.UTC().Format(time.RFC3339))
}

// Lenience limits how long Ebbtide's own evacuators may be silent after it has begun to act.
const Lenience = 3 * time.Minute

func (s Snapshot) deadline() time.Time {
	status := &s.Evacuation.Status
	at, fresh := status.EvacuationProgressTimestamp.Add(patience(s.Evacuation)), s.Now.Add(s.Fresh)
	switch status.ActiveEvacuatorClass {
	case v1alpha1.DeploymentEvacuatorClass, v1alpha1.DaemonSetEvacuatorClass:
		if fresh.After(at) {
			return fresh
		}
	}
	return at
}

func patience(e *v1alpha1.Evacuation) time.Duration {
	return time.Duration(ptr.Deref(e.Spec.ProgressDeadlineSeconds, v1alpha1.DefaultProgressDeadlineSeconds)) * time.Second
}

func activate(s Snapshot, class, why string) Decision {
	message := fmt.Sprintf("Evacuator %s is to move the pod.", class)
	if why != "" {
		message = fmt.Sprintf("Evacuator %s takes over: %s.", class, why)
	}
	emitted := event.EvacuatorActivated(s.Evacuation, message)
	if why != "" {
		emitted = event.EvacuatorReplaced(s.Evacuation, message)
	}
	return Decision{
		State: StateEvacuating, Message: message, Status: begin(s, class, message),
		RequeueAfter: patience(s.Evacuation), Events: []event.Event{emitted},
	}
}

// restart sets the progress time to now, because the recorded one lies in the future or is missing.
func restart(s Snapshot) Decision {
	class := s.Evacuation.Status.ActiveEvacuatorClass
	message := fmt.Sprintf("Evacuator %s has no progress timestamp; its time begins now.", class)
	if progress := s.Evacuation.Status.EvacuationProgressTimestamp; progress != nil {
		message = fmt.Sprintf("The progress timestamp %s of evacuator %s lies in the future and is not believed; its time begins now. Check the clock of the evacuator.",
			progress.UTC().Format(time.RFC3339), class)
	}
	return Decision{
		State: StateEvacuating, Message: message, Status: begin(s, class, message),
		RequeueAfter: patience(s.Evacuation),
		Events:       []event.Event{event.EvacuatorRestarted(s.Evacuation, message)},
	}
}

func begin(s Snapshot, class, message string) *v1alpha1.EvacuationStatus {
	status := s.Evacuation.Status.DeepCopy()
	status.ActiveEvacuatorClass = class
	status.ActiveEvacuatorCompleted = false
	status.EvacuationProgressTimestamp = &metav1.Time{Time: s.Now}
	status.ExpectedEvacuationFinishTime = nil
	status.Message = message
	return status
}

// keep leaves the turn with the active evacuator, which may return while the eviction is refused.
func keep(s Snapshot) Decision {
	class := s.Evacuation.Status.ActiveEvacuatorClass
	d := Decision{
		State:        StateEvacuating,
		Message:      fmt.Sprintf("Evacuator %s moves the pod.", class),
		RequeueAfter: s.deadline().Sub(s.Now),
	}
	if !meta.IsStatusConditionTrue(s.Evacuation.Status.Conditions, v1alpha1.ConditionEvictionRefused) {
		return d
	}
	message := fmt.Sprintf("Evacuator %s reports progress again; the eviction is put off.", class)
	d.Message = message
	d.Status = s.Evacuation.Status.DeepCopy()
	d.Status.Message = message
	d.Status.RefusingBudgetName = ""
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonEvacuatorReturned, Message: message,
		LastTransitionTime: metav1.Time{Time: s.Now},
	})
	d.Events = []event.Event{event.EvacuatorReturned(s.Evacuation, message)}
	return d
}
