package evictionrequest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	unsupported = "Unsupported target type."
	duplicate   = "Active Eviction already exists for the same target."

	conditionFailed  = string(lifecyclev1alpha1.EvictionConditionFailed)
	conditionEvicted = string(lifecyclev1alpha1.EvictionConditionTargetEvicted)

	maxQuote = 1000
)

// Final reports whether an Eviction is over, for better or worse.
func Final(status *lifecyclev1alpha1.EvictionStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, conditionFailed) || meta.IsStatusConditionTrue(status.Conditions, conditionEvicted)
}

// Relevant returns the Eviction that decides about a target: the one that has succeeded, else the
// oldest that is not over, else the latest that has failed; nil if there is none. Active is true
// unless it has failed.
func Relevant(evictions []*lifecyclev1alpha1.Eviction) (relevant *lifecyclev1alpha1.Eviction, active bool) {
	rank := func(e *lifecyclev1alpha1.Eviction) int {
		switch {
		case meta.IsStatusConditionTrue(e.Status.Conditions, conditionEvicted):
			return 0
		case !Final(&e.Status):
			return 1
		}
		return 2
	}
	for _, e := range evictions {
		if relevant == nil {
			relevant = e
			continue
		}
		age := cmp.Or(e.CreationTimestamp.Compare(relevant.CreationTimestamp.Time), cmp.Compare(number(e.Name), number(relevant.Name)), cmp.Compare(e.Name, relevant.Name))
		if rank(e) == 2 {
			age = -age
		}
		if cmp.Or(cmp.Compare(rank(e), rank(relevant)), age) < 0 {
			relevant = e
		}
	}
	return relevant, relevant != nil && rank(relevant) < 2
}

// next returns the status of an open Eviction and the delay to its next decision; 0 is never.
func (s subject) next(e *lifecyclev1alpha1.Eviction, first bool) (lifecyclev1alpha1.EvictionStatus, time.Duration) {
	status := *e.Status.DeepCopy()
	status.ObservedGeneration = new(e.Generation)
	if fault := s.evictionFault(first); fault != "" {
		end(&status, lifecyclev1alpha1.ResponderStateCanceled)
		s.fail(&status, lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, fault)
		return status, 0
	}
	status.Requesters = requesters(e.Status.Requesters, s.requests)
	if len(status.TargetResponders) == 0 {
		begin(&status, s.pod)
	}
	again := s.progress(&status, len(e.Status.TargetResponders) == 0)
	return status, again
}

func (s subject) evictionFault(first bool) string {
	switch {
	case !first:
		return duplicate
	case s.pod != nil && s.pod.Spec.SchedulingGroup != nil:
		return groupMember
	}
	return ""
}

// progress advances a status as far as possible, and returns when to decide again.
func (s subject) progress(status *lifecyclev1alpha1.EvictionStatus, fresh bool) time.Duration {
	active := Active(status)
	reported := active != nil && active.CompletionTime != nil
	switch {
	case s.over() && active != nil && !reported && s.Ended[s.target.UID] < Grace:
		s.await(status)
		return Grace - s.Ended[s.target.UID]
	case s.over():
		end(status, lifecyclev1alpha1.ResponderStateInterrupted)
		s.succeed(status)
		return 0
	case !s.wanted():
		end(status, lifecyclev1alpha1.ResponderStateCanceled)
		s.fail(status, lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, "All requesters have withdrawn.")
		return 0
	case active != nil && !reported && s.patience(active) > 0:
		s.await(status)
		return s.patience(active)
	}
	// A status that another client has written without an active responder cannot be repaired: the
	// API server refuses to activate one later.
	last := active
	end(status, lifecyclev1alpha1.ResponderStateInterrupted)
	if (fresh || active != nil) && activateNext(status, s.Now) {
		s.await(status)
		return HeartbeatDeadline
	}
	s.fail(status, lifecyclev1alpha1.EvictionConditionReasonNoFurtherResponder, s.failureMessage(last))
	return 0
}

// patience returns how long the active responder may still be silent, at least one heartbeat of
// ours.
func (s subject) patience(active *lifecyclev1alpha1.ResponderStatus) time.Duration {
	return max(deadline(active).Sub(s.Now), HeartbeatEvery-s.Acting)
}

func (s subject) failureMessage(last *lifecyclev1alpha1.ResponderStatus) string {
	message := fmt.Sprintf("All responders have ended, and pod %s still exists", s.target.Name)
	if last == nil || last.Message == nil || *last.Message == "" {
		return message + "."
	}
	return fmt.Sprintf("%s; the last one, %s, reported: %s", message, last.Name, excerpt.Of(*last.Message, maxQuote))
}

// succeed sets the conditions of a pod that is gone or has ended.
func (s subject) succeed(status *lifecyclev1alpha1.EvictionStatus) {
	reason := lifecyclev1alpha1.EvictionConditionReasonPodDeleted
	if s.pod != nil {
		reason = lifecyclev1alpha1.EvictionConditionReasonPodTerminal
	}
	set(&status.Conditions, s.Now, condition(conditionEvicted, metav1.ConditionTrue, reason, endOf(s.target.Name, s.pod)))
	set(&status.Conditions, s.Now, condition(conditionFailed, metav1.ConditionFalse, lifecyclev1alpha1.EvictionConditionReasonSucceeded, ""))
}

func (s subject) fail(status *lifecyclev1alpha1.EvictionStatus, reason lifecyclev1alpha1.EvictionConditionReason, message string) {
	for _, c := range failed(reason, message) {
		set(&status.Conditions, s.Now, c)
	}
}

func (s subject) await(status *lifecyclev1alpha1.EvictionStatus) {
	for _, c := range awaiting() {
		set(&status.Conditions, s.Now, c)
	}
}

func failed(reason lifecyclev1alpha1.EvictionConditionReason, message string) []metav1.Condition {
	return []metav1.Condition{
		condition(conditionFailed, metav1.ConditionTrue, reason, message),
		condition(conditionEvicted, metav1.ConditionFalse, lifecyclev1alpha1.EvictionConditionReasonEvictionFailed, ""),
	}
}

func awaiting() []metav1.Condition {
	return []metav1.Condition{
		condition(conditionFailed, metav1.ConditionFalse, lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction, ""),
		condition(conditionEvicted, metav1.ConditionFalse, lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction, ""),
	}
}

func condition(kind string, status metav1.ConditionStatus, reason lifecyclev1alpha1.EvictionConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: string(reason), Message: message}
}

func set(conditions *[]metav1.Condition, now time.Time, c metav1.Condition) {
	c.LastTransitionTime = *moment(now)
	meta.SetStatusCondition(conditions, c)
}

// changed reports whether the controller's part of a status differs.
func changed(before, after *lifecyclev1alpha1.EvictionStatus) bool {
	a, b := *before, *after
	a.Requesters, b.Requesters = nil, nil
	return !equality.Semantic.DeepEqual(a, b) || !sameRequesters(before.Requesters, after.Requesters)
}

func sameRequesters(a, b []lifecyclev1alpha1.Requester) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(one lifecyclev1alpha1.Requester) bool { return !slices.Contains(b, one) })
}
