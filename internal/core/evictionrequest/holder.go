package evictionrequest

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/utils/ptr"
)

// tolerance extends the deadline of a silent responder, as the controller may be slow.
const tolerance = time.Minute

// Holder is the responder for which all other drainers of a pod wait.
type Holder struct {
	Eviction, Responder string
	Message             string
}

// HolderOf returns the active responder of a pod in an open Eviction; zero without one that the pod
// names, or if it has been silent for too long at now.
func HolderOf(pod *corev1.Pod, evictions []*lifecyclev1alpha1.Eviction, now time.Time) Holder {
	var holder *lifecyclev1alpha1.Eviction
	for _, e := range evictions {
		holds := activeNamed(pod, e, now) != nil
		if holds && (holder == nil || older(e, holder)) {
			holder = e
		}
	}
	if holder == nil {
		return Holder{}
	}
	own := Active(&holder.Status)
	return Holder{Eviction: holder.Name, Responder: own.Name, Message: ptr.Deref(own.Message, "")}
}

func older(a, b *lifecyclev1alpha1.Eviction) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// activeNamed returns the active responder of an Eviction if the pod names it; nil otherwise.
func activeNamed(pod *corev1.Pod, e *lifecyclev1alpha1.Eviction, now time.Time) *lifecyclev1alpha1.ResponderStatus {
	target, named := EvictionTarget(e)
	if !named || target.UID != pod.UID || Final(&e.Status) {
		return nil
	}
	active := Active(&e.Status)
	if active == nil || active.Name == DefaultEvictor {
		return nil
	}
	names := func(one corev1.EvictionResponder) bool { return one.Name == active.Name }
	if !slices.ContainsFunc(pod.Spec.EvictionResponders, names) || !now.IsZero() && now.After(deadline(active).Add(tolerance)) {
		return nil
	}
	return active
}
