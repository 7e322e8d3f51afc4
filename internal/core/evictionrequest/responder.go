package evictionrequest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Sort sorts responders as the API server does: by priority, then by domain labels, then by name.
func Sort(responders []lifecyclev1alpha1.TargetResponder) {
	slices.SortStableFunc(responders, func(a, b lifecyclev1alpha1.TargetResponder) int {
		if (a.Priority == nil) != (b.Priority == nil) {
			if a.Priority == nil {
				return 1
			}
			return -1
		}
		domainA, keyA, _ := strings.Cut(a.Name, "/")
		domainB, keyB, _ := strings.Cut(b.Name, "/")
		return cmp.Or(cmp.Compare(ptr.Deref(b.Priority, 0), ptr.Deref(a.Priority, 0)),
			slices.Compare(fromTheTop(domainA), fromTheTop(domainB)), cmp.Compare(keyA, keyB))
	})
}

func fromTheTop(domain string) []string {
	labels := strings.Split(domain, ".")
	slices.Reverse(labels)
	return labels
}

func responders(pod *corev1.Pod) []lifecyclev1alpha1.TargetResponder {
	all := []lifecyclev1alpha1.TargetResponder{{
		Name: DefaultEvictor, Priority: new(int32(defaultPriority)), State: lifecyclev1alpha1.ResponderStateInactive,
	}}
	if pod != nil {
		for _, own := range pod.Spec.EvictionResponders[:min(len(pod.Spec.EvictionResponders), maxResponders)] {
			if own.Name != DefaultEvictor {
				all = append(all, lifecyclev1alpha1.TargetResponder{
					Name: own.Name, Priority: own.Priority, State: lifecyclev1alpha1.ResponderStateInactive,
				})
			}
		}
	}
	Sort(all)
	return all
}

// Active returns the active responder; nil if there is none.
func Active(status *lifecyclev1alpha1.EvictionStatus) *lifecyclev1alpha1.ResponderStatus {
	for _, one := range status.TargetResponders {
		if one.State == lifecyclev1alpha1.ResponderStateActive {
			return ResponderOf(status, one.Name)
		}
	}
	return nil
}

// ResponderOf returns the status of a responder; nil if the Eviction does not have it.
func ResponderOf(status *lifecyclev1alpha1.EvictionStatus, name string) *lifecyclev1alpha1.ResponderStatus {
	for i := range status.Responders {
		if status.Responders[i].Name == name {
			return &status.Responders[i]
		}
	}
	return nil
}

// begin adds the inactive responders of a pod to a status.
func begin(status *lifecyclev1alpha1.EvictionStatus, pod *corev1.Pod) {
	status.TargetResponders = responders(pod)
	status.Responders = nil
	for _, one := range status.TargetResponders {
		status.Responders = append(status.Responders, lifecyclev1alpha1.ResponderStatus{Name: one.Name})
	}
}

// end sets the state of the active responder: completed if it has reported that.
func end(status *lifecyclev1alpha1.EvictionStatus, as lifecyclev1alpha1.ResponderStateType) {
	for i := range status.TargetResponders {
		one := &status.TargetResponders[i]
		if one.State != lifecyclev1alpha1.ResponderStateActive {
			continue
		}
		one.State = as
		if reported := ResponderOf(status, one.Name); reported != nil && reported.CompletionTime != nil {
			one.State = lifecyclev1alpha1.ResponderStateCompleted
		}
	}
}

func activateNext(status *lifecyclev1alpha1.EvictionStatus, now time.Time) bool {
	ordered := slices.Clone(status.TargetResponders)
	Sort(ordered)
	for _, next := range ordered {
		if next.State != lifecyclev1alpha1.ResponderStateInactive {
			continue
		}
		for i := range status.TargetResponders {
			if status.TargetResponders[i].Name == next.Name {
				status.TargetResponders[i].State = lifecyclev1alpha1.ResponderStateActive
			}
		}
		if own := ResponderOf(status, next.Name); own != nil && own.StartTime == nil {
			own.StartTime = moment(now)
		}
		return true
	}
	return false
}

// deadline returns when the active responder is considered unavailable.
func deadline(reported *lifecyclev1alpha1.ResponderStatus) time.Time {
	return lastSign(reported).Add(HeartbeatDeadline)
}

// moment returns a time as the API server stores it.
func moment(at time.Time) *metav1.Time {
	return &metav1.Time{Time: at.UTC().Truncate(time.Second)}
}

// OwnResponder returns the active responder of ours; empty if there is none.
func OwnResponder(status *lifecyclev1alpha1.EvictionStatus) string {
	active := Active(status)
	if active == nil || Final(status) || active.Name != DefaultEvictor && active.Name != v1alpha1.DeploymentSurgeResponder {
		return ""
	}
	return active.Name
}
