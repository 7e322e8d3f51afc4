// Package evictionrequest decides for the evictionrequest-controller of lifecycle.k8s.io
// (KEP-4563, Kubernetes 1.37), for its default responder, and whether Ebbtide takes that role. At
// most one responder is active: the one of highest priority that has not been active yet, until
// it reports or is silent for 20 minutes. A final condition never changes.
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
	// FieldManager is the field manager of the controller.
	FieldManager = "ebbtide-eviction-controller"
	// DefaultEvictor is the last responder, which the controller adds.
	DefaultEvictor = lifecyclev1alpha1.EvictionResponderImperativeEviction
	// HeartbeatDeadline is the time for which an active responder may be silent.
	HeartbeatDeadline = 20 * time.Minute
	// Grace is the time to report after the pod is gone.
	Grace = 5 * time.Second

	// defaultPriority ranks DefaultEvictor. maxResponders limits those of a pod, as in the API.
	defaultPriority, maxResponders = 100, 10
	maxRequesters                  = 100
)

// Target is the pod that is to be evicted: the one with this UID, and no other of its name.
type Target struct {
	Name string
	UID  types.UID
}

// TargetOf returns the target of a request; false if it names no pod.
func TargetOf(request *lifecyclev1alpha1.EvictionRequest) (Target, bool) {
	if request.Spec.Target.Pod == nil {
		return Target{}, false
	}
	return Target{request.Spec.Target.Pod.Name, request.Spec.Target.Pod.UID}, true
}

// EvictionTarget returns the target of an Eviction; false if it names no pod.
func EvictionTarget(e *lifecyclev1alpha1.Eviction) (Target, bool) {
	if e.Spec.Target.Pod == nil {
		return Target{}, false
	}
	return Target{e.Spec.Target.Pod.Name, e.Spec.Target.Pod.UID}, true
}

// Snapshot is the state of the pods of one Stem in one namespace.
type Snapshot struct {
	Now time.Time
	// Pods have the names of targets. They are read from the API server.
	Pods      []*corev1.Pod
	Requests  []*lifecyclev1alpha1.EvictionRequest
	Evictions []*lifecyclev1alpha1.Eviction
	// Strangers are Evictions of other pods that use up names of these.
	Strangers []*lifecyclev1alpha1.Eviction
	// Acting is the time since Ebbtide became the controller, before which its responders were
	// silent.
	Acting time.Duration
	// Ended holds the time since targets are known to be gone or to have ended.
	Ended map[types.UID]time.Duration
}

// EvictionChange is a new status of an Eviction.
type EvictionChange struct {
	Eviction *lifecyclev1alpha1.Eviction
	// Status is complete. The controller writes of it conditions, observedGeneration,
	// requesters, targetResponders, and names and startTime of responders.
	Status lifecyclev1alpha1.EvictionStatus
}

// RequestChange is a new status of an EvictionRequest.
type RequestChange struct {
	Request *lifecyclev1alpha1.EvictionRequest
	Status  lifecyclev1alpha1.EvictionRequestStatus
}

// Decision is the objects to write, in this order.
type Decision struct {
	Creations []*lifecyclev1alpha1.Eviction
	// Metadata are Evictions with the labels and owners that they lacked.
	Metadata  []*lifecyclev1alpha1.Eviction
	Evictions []EvictionChange
	Requests  []RequestChange
	// Ended are the targets that are gone or have ended and whose Evictions are not final yet.
	Ended        []types.UID
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

type subject struct {
	Snapshot
	target Target
	// namesake has the name of the target; pod has its UID, too, and is nil otherwise.
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
		after[e] = s.advance(d, e, e == relevant || Final(&relevant.Status))
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
			// It is too late for this Eviction, and gets another one once that is written.
		default:
			d.setConditions(s.Snapshot, request, s.conditionsOf(relevant, after))
		}
	}
}

func (s subject) advance(d *Decision, e *lifecyclev1alpha1.Eviction, first bool) lifecyclev1alpha1.EvictionStatus {
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

// wanted reports whether a request is left that is not being deleted.
func (s subject) wanted() bool { return slices.ContainsFunc(s.requests, asks) }

func asks(request *lifecyclev1alpha1.EvictionRequest) bool {
	return request.DeletionTimestamp == nil && request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction
}

// newIntent reports whether a request has no Eviction yet. A failed one is not repeated.
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
