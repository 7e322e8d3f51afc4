package evictionrequest

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
)

// forgiven is for how long after its deadline a silent responder still holds others up: it is
// for the controller to end its turn, and the next one may have it then.
const forgiven = time.Minute

// Holder is a responder for which all wait who would evict a pod, but the responder itself.
type Holder struct {
	// Eviction and Responder are their names.
	Eviction, Responder string
	// Says is what the responder has written last.
	Says string
}

// HolderOf returns which responder has its turn to move a pod, in any Eviction of it that is
// not over; its zero value if nobody has, or the default evictor. Only a responder counts that
// the pod names. One that has been silent for too long does not, also where no controller ends
// its turn; that takes a clock, so that it holds on while now is zero.
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
	held := Holder{Eviction: holder.Name, Responder: own.Name}
	if own.Message != nil {
		held.Says = *own.Message
	}
	return held
}

func older(a, b *lifecyclev1alpha1.Eviction) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// activeNamed is the responder of an Eviction that has its turn, if the pod has named it; nil if
// there is none.
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
	if !slices.ContainsFunc(pod.Spec.EvictionResponders, names) || !now.IsZero() && now.After(silence(active).Add(forgiven)) {
		return nil
	}
	return active
}
