package evacuation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Decide returns what happens next to an evacuation.
func Decide(s Snapshot) Decision {
	d := decide(s)
	if left, called := untilWithdrawal(s); called && left > 0 && (d.RequeueAfter == 0 || left < d.RequeueAfter) {
		d.RequeueAfter = left
	}
	d.RequeueAfter = max(d.RequeueAfter, 0)
	return d
}

func decide(s Snapshot) Decision {
	left, called := untilWithdrawal(s)
	switch {
	case gone(s):
		return done(s, fmt.Sprintf("Pod %s with UID %s is gone.", s.Evacuation.Spec.PodRef.Name, s.Evacuation.Spec.PodRef.UID))
	case podclass.Terminal(s.Pod):
		return done(s, fmt.Sprintf("Pod %s has finished: %s.", s.Pod.Name, s.Pod.Status.Phase))
	case called && left <= 0 && !s.ClockSkewed:
		return withdraw(s)
	case len(Instigators(s.Evacuation)) == 0 && !bound(s):
		return unwanted(s)
	case s.Evacuation.Name != Name(s.Pod):
		return says(s, StateMismatched, fmt.Sprintf("The name of this Evacuation does not match its pod, nothing is evicted. Create it again as %s.", Name(s.Pod)))
	case s.Pod.DeletionTimestamp != nil:
		return Decision{State: StateTerminating, Message: fmt.Sprintf("Pod %s terminates.", s.Pod.Name)}
	}
	if unresolved(s.Evacuation) && len(s.Evacuators) > 0 {
		return Decision{State: StateEvacuating, Message: "Evacuators were resolved from the pod.", Evacuators: s.Evacuators}
	}
	return takeTurn(s)
}

// gone compares UIDs: a pod that came again under the same name is another.
func gone(s Snapshot) bool {
	return s.Pod == nil || s.Pod.UID != s.Evacuation.Spec.PodRef.UID
}

func unresolved(e *v1alpha1.Evacuation) bool {
	return len(e.Spec.Evacuators) == 0 && e.Status.ActiveEvacuatorClass == ""
}

// done cleans up. Foreign finalizers hold the object until their owners remove them.
func done(s Snapshot, message string) Decision {
	d := Decision{
		State:          StateDone,
		Message:        message,
		DropFinalizers: Instigators(s.Evacuation),
		Delete:         s.Evacuation.DeletionTimestamp == nil,
	}
	if foreign := foreignFinalizers(s.Evacuation); len(foreign) > 0 {
		d.Message += fmt.Sprintf(" This Evacuation is still held by %s.", strings.Join(foreign, ", "))
		d.Status = messageIfNew(s.Evacuation, d.Message)
	}
	return d
}

// bound reports whether an unwanted evacuation must end in an eviction: its evacuator forbade its
// cancellation and has completed or is silent.
func bound(s Snapshot) bool {
	if !forbidden(s.Evacuation) {
		return false
	}
	if !s.Evacuation.Status.ActiveEvacuatorCompleted && !believable(s) {
		return true
	}
	_, over := turnOver(s)
	return over
}

func forbidden(e *v1alpha1.Evacuation) bool {
	return e.Status.EvacuationCancellationPolicy == v1alpha1.CancellationForbid && e.Status.ActiveEvacuatorClass != ""
}

// unwanted handles an evacuation without a request. An evacuator that forbids its cancellation
// continues.
func unwanted(s Snapshot) Decision {
	if forbidden(s.Evacuation) {
		d := says(s, StateForbidden, fmt.Sprintf("This evacuation is no longer requested, but evacuator %s forbids its cancellation. It continues until the pod is gone.",
			s.Evacuation.Status.ActiveEvacuatorClass))
		d.RequeueAfter = s.deadline().Sub(s.Now)
		return d
	}
	return Decision{
		State:   StateCancelled,
		Message: "This evacuation is no longer requested.",
		Delete:  s.Evacuation.DeletionTimestamp == nil,
	}
}

// says does nothing but write why nothing is done.
func says(s Snapshot, state State, message string) Decision {
	return Decision{State: state, Message: message, Status: messageIfNew(s.Evacuation, message)}
}

func messageIfNew(e *v1alpha1.Evacuation, message string) *v1alpha1.EvacuationStatus {
	if e.Status.Message == message {
		return nil
	}
	status := e.Status.DeepCopy()
	status.Message = message
	return status
}

// evict returns the way of a pod that no evacuator moves.
func evict(s Snapshot, why string) Decision {
	kind := podclass.Type(s.Pod)
	if words, over := handedOver(s, why); over {
		return Decision{State: StateHandedOver, Message: words}
	}
	if kind == v1alpha1.PodTypeDefault {
		return evictNow(s, fmt.Sprintf("Pod %s is evicted: %s.", s.Pod.Name, why))
	}
	return unevictable(s, fmt.Sprintf("%s pods are never evicted and %s. %s", kind, why, remedy(kind, s.Pod)))
}

// evictNow returns an event only if evacuators were active before.
func evictNow(s Snapshot, message string) Decision {
	d := Decision{State: StateEvicting, Message: message, Evict: true}
	if s.Evacuation.Status.ActiveEvacuatorClass != "" {
		d.Events = []event.Event{event.PodEvicted(s.Evacuation, message)}
	}
	return d
}

func remedy(kind v1alpha1.PodType, pod *corev1.Pod) string {
	if kind == v1alpha1.PodTypeStatic {
		return fmt.Sprintf("Run the node agent on node %s, or take the pod's manifest away from it.", pod.Spec.NodeName)
	}
	return command.Of("Run its evacuator, or delete the pod by hand: kubectl -n %s delete pod %s", pod.Namespace, pod.Name)
}

// unevictable shows up where refusals do, so that the pod is named as blocked.
func unevictable(s Snapshot, message string) Decision {
	d := Decision{State: StateUnevictable, Message: message}
	refusal := Refusal{Outcome: Outcome{Result: Never, Type: v1alpha1.BlockerEvictionError, Message: message}}
	if news(s.Evacuation.Status, refusal) {
		status := Refuse(s.Evacuation.Status, refusal, s.Now)
		d.Status = &status
	}
	return d
}

const (
	// AttemptInterval is the least time between two recorded calls of the eviction API for one pod.
	AttemptInterval = 30 * time.Second
	// attemptPatience is the time that a request outlives the last recorded call.
	attemptPatience = 5*time.Minute + AttemptInterval
)

// lastAttempt returns the time of the last call of the eviction API, or else of the creation.
func lastAttempt(s Snapshot) time.Time {
	noted, err := time.Parse(time.RFC3339, s.Evacuation.Annotations[v1alpha1.EvictionAttemptAnnotation])
	if err != nil || noted.After(s.Now.Add(MaxClockSkew)) {
		return s.Evacuation.CreationTimestamp.Time
	}
	return noted
}

// untilWithdrawal returns the time until the request by eviction calls ends; called is false
// without one.
func untilWithdrawal(s Snapshot) (left time.Duration, called bool) {
	if !slices.Contains(s.Evacuation.Finalizers, v1alpha1.EvictionInstigator) {
		return 0, false
	}
	if gone(s) || podclass.Terminal(s.Pod) || s.Pod.DeletionTimestamp != nil {
		return 0, false
	}
	return lastAttempt(s).Add(attemptPatience).Sub(s.Now), true
}

// withdraw removes the request of clients that no longer call the eviction API.
func withdraw(s Snapshot) Decision {
	message := fmt.Sprintf("The eviction API has not been called for pod %s since %s. The request is withdrawn.",
		s.Pod.Name, lastAttempt(s).UTC().Format(time.RFC3339))
	return Decision{
		State: StateWithdrawn, Message: message,
		DropFinalizers: []string{v1alpha1.EvictionInstigator},
		Events:         []event.Event{event.EvictionWithdrawn(s.Evacuation, message)},
	}
}
