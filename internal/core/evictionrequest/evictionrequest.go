// Package evictionrequest decides for the evictionrequest-controller of lifecycle.k8s.io what
// becomes of EvictionRequests and Evictions, what its default responder does, and whether
// Ebbtide is that controller (KEP-4563, Kubernetes 1.37). At most one responder is active: the
// one of highest priority that has not been active yet, until it reports or is silent for 20
// minutes. A final condition never changes.
package evictionrequest

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// FieldManager is who the controller is in server-side apply.
	FieldManager = "ebbtide-eviction-controller"
	// DefaultEvictor is the responder that comes last; the controller adds it.
	DefaultEvictor = lifecyclev1alpha1.EvictionResponderImperativeEviction
	// HeartbeatDeadline is how long an active responder may be silent.
	HeartbeatDeadline = 20 * time.Minute
	// Grace is how long a responder has to report when the pod is gone.
	Grace = 5 * time.Second

	// defaultPriority is that of DefaultEvictor, maxResponders how many a pod may name.
	defaultPriority, maxResponders = 100, 10
	// maxRequesters is how many requesters and owners an Eviction has.
	maxRequesters = 100
)

// Target is the pod that is to be evicted: the one with this UID, and no other of its name.
type Target struct {
	Name string
	UID  types.UID
}

// TargetOf is the target of a request; false if it names no pod.
func TargetOf(request *lifecyclev1alpha1.EvictionRequest) (Target, bool) {
	if request.Spec.Target.Pod == nil {
		return Target{}, false
	}
	return Target{request.Spec.Target.Pod.Name, request.Spec.Target.Pod.UID}, true
}

// EvictionTarget is the target of an Eviction; false if it names no pod.
func EvictionTarget(e *lifecyclev1alpha1.Eviction) (Target, bool) {
	if e.Spec.Target.Pod == nil {
		return Target{}, false
	}
	return Target{e.Spec.Target.Pod.Name, e.Spec.Target.Pod.UID}, true
}

// Snapshot is what is known of the pods of one Stem in one namespace.
type Snapshot struct {
	// Now is the API server's time.
	Now time.Time
	// Pods are those that bear the names of targets, as the API server has them now.
	Pods []*corev1.Pod
	// Requests and Evictions are all of these pods.
	Requests  []*lifecyclev1alpha1.EvictionRequest
	Evictions []*lifecyclev1alpha1.Eviction
	// Strangers are Evictions of other pods whose names are for these: only their names matter.
	Strangers []*lifecyclev1alpha1.Eviction
	// Acting is for how long Ebbtide has been the controller. Before that its own responders
	// may have been silent because it was away.
	Acting time.Duration
	// Ended is for how long targets have been seen to be gone or to have ended; what is
	// missing was not seen before.
	Ended map[types.UID]time.Duration
}

// EvictionChange is an Eviction and what its status is to be.
type EvictionChange struct {
	Eviction *lifecyclev1alpha1.Eviction
	// Status is complete. The controller writes of it conditions, observedGeneration,
	// requesters, targetResponders, and names and startTime of responders.
	Status lifecyclev1alpha1.EvictionStatus
}

// RequestChange is an EvictionRequest and what its status is to be.
type RequestChange struct {
	Request *lifecyclev1alpha1.EvictionRequest
	Status  lifecyclev1alpha1.EvictionRequestStatus
}

// Decision is what is to be written, in this order.
type Decision struct {
	// Creations are Evictions that are missing.
	Creations []*lifecyclev1alpha1.Eviction
	// Metadata are Evictions that lack labels or owners; they are as they should be.
	Metadata []*lifecyclev1alpha1.Eviction
	// Evictions and Requests are whose status changes.
	Evictions []EvictionChange
	Requests  []RequestChange
	// Ended are the targets that are gone or have ended and whose Evictions do not say so yet.
	Ended []types.UID
	// RequeueAfter is when to decide again if nothing happens before; 0 is never.
	RequeueAfter time.Duration
}

// Empty reports whether nothing is to be written.
func (d Decision) Empty() bool {
	return len(d.Creations)+len(d.Metadata)+len(d.Evictions)+len(d.Requests) == 0
}

// Decide decides about all targets of the snapshot. Objects of it are not changed.
func Decide(s Snapshot) Decision {
	var d Decision
	for _, request := range s.Requests {
		if _, named := TargetOf(request); !named {
			d.refuse(s, request, unsupported)
		}
	}
	for _, target := range s.targets() {
		s.of(target).decide(&d)
	}
	return d
}

// targets are those of the snapshot, in an order that does not depend on that of the objects.
func (s Snapshot) targets() []Target {
	var all []Target
	for _, request := range s.Requests {
		if target, named := TargetOf(request); named {
			all = append(all, target)
		}
	}
	for _, e := range s.Evictions {
		if target, named := EvictionTarget(e); named {
			all = append(all, target)
		}
	}
	slices.SortFunc(all, func(a, b Target) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) })
	return slices.Compact(all)
}

// subject is one target and all that concerns it.
type subject struct {
	Snapshot
	target Target
	// namesake is the pod that bears the name; pod is it if it is the target, else nil.
	namesake, pod *corev1.Pod
	requests      []*lifecyclev1alpha1.EvictionRequest
	evictions     []*lifecyclev1alpha1.Eviction
}

func (s Snapshot) of(target Target) subject {
	one := subject{Snapshot: s, target: target}
	for _, pod := range s.Pods {
		if pod.Name == target.Name {
			one.namesake = pod
		}
	}
	if one.namesake != nil && one.namesake.UID == target.UID {
		one.pod = one.namesake
	}
	for _, request := range s.Requests {
		if of, named := TargetOf(request); named && of == target {
			one.requests = append(one.requests, request)
		}
	}
	for _, e := range s.Evictions {
		if of, named := EvictionTarget(e); named && of == target {
			one.evictions = append(one.evictions, e)
		}
	}
	return one
}

func (s subject) decide(d *Decision) {
	relevant, active := Relevant(s.evictions)
	after := map[*lifecyclev1alpha1.Eviction]lifecyclev1alpha1.EvictionStatus{}
	for _, e := range s.evictions {
		after[e] = s.goOn(d, e, e == relevant || Final(&relevant.Status))
		if whole := s.whole(e, after[e]); whole != nil {
			d.Metadata = append(d.Metadata, whole)
		}
	}
	fault := s.fault()
	if fault == "" && !active && s.newIntent() {
		d.Creations = append(d.Creations, s.creation(d.Creations))
		relevant = nil
	}
	for _, request := range s.requests {
		switch {
		case request.DeletionTimestamp != nil, settled(request):
		case fault != "":
			d.refuse(s.Snapshot, request, fault)
		case active && asks(request) && !observed(request) && meta.IsStatusConditionTrue(after[relevant].Conditions, conditionFailed):
			// It has come too late for this Eviction. Once that is written, it has one of its own.
		default:
			d.tell(s.Snapshot, request, s.conditionsOf(relevant, after))
		}
	}
}

// goOn takes an Eviction further, if it is not over, and returns its status.
func (s subject) goOn(d *Decision, e *lifecyclev1alpha1.Eviction, first bool) lifecyclev1alpha1.EvictionStatus {
	if Final(&e.Status) {
		return e.Status
	}
	next, again := s.next(e, first)
	d.again(again)
	if changed(&e.Status, &next) {
		d.Evictions = append(d.Evictions, EvictionChange{e, next})
	}
	if !Final(&next) && s.over() {
		d.Ended = append(d.Ended, s.target.UID)
	}
	return next
}

func (d *Decision) again(after time.Duration) {
	if after > 0 && (d.RequeueAfter == 0 || after < d.RequeueAfter) {
		d.RequeueAfter = after
	}
}

// over reports whether the target is gone or has ended.
func (s subject) over() bool { return s.pod == nil || podclass.Terminal(s.pod) }

// wanted reports whether somebody asks for the eviction. Who deletes a request does not,
// even while a finalizer holds it.
func (s subject) wanted() bool { return slices.ContainsFunc(s.requests, asks) }

func asks(request *lifecyclev1alpha1.EvictionRequest) bool {
	return request.DeletionTimestamp == nil && request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction
}

// newIntent reports whether somebody asks for an eviction that has not been tried: the
// first of a target, or again after one that has failed. One that has failed and is asked
// for by nobody anew is not tried for ever.
func (s subject) newIntent() bool {
	if len(s.evictions) == 0 {
		return s.wanted()
	}
	return slices.ContainsFunc(s.requests, func(request *lifecyclev1alpha1.EvictionRequest) bool {
		return asks(request) && !observed(request)
	})
}

func observed(request *lifecyclev1alpha1.EvictionRequest) bool {
	return request.Status.ObservedGeneration != nil && *request.Status.ObservedGeneration == request.Generation
}
