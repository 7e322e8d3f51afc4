package evacuation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// NewsEvery is how often an Evacuation tells at most what a responder of its pod reports, as
// long as that has its turn.
const NewsEvery = 20 * time.Second

// Phase is how far the responders of a pod are.
type Phase string

const (
	// NoResponders is that there are none to be asked.
	NoResponders Phase = ""
	// RespondersAwaited is that they are to be asked, or have been, and that nobody has a turn yet.
	RespondersAwaited Phase = "Awaited"
	// RespondersActive is that one of them has its turn.
	RespondersActive Phase = "Responding"
	// RespondersDone is that none of them will have a turn any more.
	RespondersDone Phase = "Responded"
)

// Responders are those that a pod names in spec.evictionResponders. They move it before the
// evacuation does that somebody else than a NodeMaintenance asks for.
type Responders struct {
	Phase Phase
	// Reason and Words are those of v1alpha1.ConditionEvictionRequested: what is so, which
	// changes with the turns only. While they are awaited, Words is why for longer than usual;
	// empty if there is nothing to say.
	Reason, Words string
	// Says is what the one has said whose turn it is, Sign when it last said anything, and
	// Finish when it expects to be ready; nil if it does not say.
	Says   string
	Sign   time.Time
	Finish *metav1.Time
	// RequeueAfter is when time alone changes what is known; 0 is never.
	RequeueAfter time.Duration
	// Events become true with RespondersDone.
	Events []event.Event
}

// AskedByOthers reports whether an evacuation is asked for by somebody for whom responders of
// the pod are asked as well: NodeMaintenances ask these themselves.
func AskedByOthers(e *v1alpha1.Evacuation) bool {
	return !slices.Contains(e.Finalizers, v1alpha1.NodeMaintenanceInstigator) &&
		slices.ContainsFunc(Instigators(e), func(one string) bool { return one != v1alpha1.LifecycleInstigator })
}

// RespondersOver reports whether the responders of the pod are asked no more, for good.
func RespondersOver(e *v1alpha1.Evacuation) bool {
	return meta.IsStatusConditionFalse(e.Status.Conditions, v1alpha1.ConditionEvictionRequested)
}

// respond leaves the pod to its responders; false if the evacuation goes on itself. In a
// turn of a responder of ours it does.
func respond(s Snapshot) (Decision, bool) {
	e := s.Evacuation
	if RespondersOver(e) || !AskedByOthers(e) || ForTurn(e) {
		return Decision{}, false
	}
	told := meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEvictionRequested)
	switch s.Responders.Phase {
	case NoResponders:
		if !told {
			return Decision{}, false
		}
		s.Responders.Reason = v1alpha1.ReasonRequestsNotServed
		s.Responders.Words = fmt.Sprintf("The responders of pod %s cannot be asked any more.", s.Pod.Name)
		return responded(s), true
	case RespondersAwaited:
		return awaited(s), true
	case RespondersActive:
		return responding(s), true
	}
	return responded(s), true
}

func awaited(s Snapshot) Decision {
	d := Decision{State: StateResponding, Message: fmt.Sprintf("The responders of pod %s are asked to move it.", s.Pod.Name)}
	if s.Responders.Words != "" {
		d = says(s, StateResponding, s.Responders.Words)
	}
	d.RequeueAfter = s.Responders.RequeueAfter
	return d
}

// responding tells whose turn it is at once, and what that reports from time to time.
func responding(s Snapshot) Decision {
	r, before := s.Responders, &s.Evacuation.Status
	d := Decision{State: StateResponding, Message: r.Words, RequeueAfter: r.RequeueAfter}
	if r.Says != "" {
		d.Message += " It says: " + r.Says
	}
	status := before.DeepCopy()
	turned := requested(s, status, metav1.ConditionTrue)
	status.Message = d.Message
	// What an evacuator has reported of its turn stays its report.
	reports := before.ActiveEvacuatorClass == ""
	if reports {
		status.ExpectedEvacuationFinishTime = r.Finish
		status.EvacuationProgressTimestamp = later(s.Now, r.Sign)
	}
	wait := pause(s, status)
	switch {
	case turned, reports && wait == 0:
		d.Status = status
	case reports && wait > 0:
		d.RequeueAfter = wait
	}
	return d
}

// later is the later of two times, as the API server keeps it.
func later(a, b time.Time) *metav1.Time {
	if b.After(a) {
		a = b
	}
	return &metav1.Time{Time: a.Truncate(time.Second)}
}

// pause is when to tell what a responder has reported since it was last told of; negative if
// it has reported nothing.
func pause(s Snapshot, status *v1alpha1.EvacuationStatus) time.Duration {
	before := &s.Evacuation.Status
	told := before.EvacuationProgressTimestamp
	switch {
	case told == nil:
		return 0
	case before.Message == status.Message && before.ExpectedEvacuationFinishTime.Equal(status.ExpectedEvacuationFinishTime) && !s.Responders.Sign.After(told.Time):
		return -1
	}
	return min(max(told.Add(NewsEvery).Sub(s.Now), 0), NewsEvery)
}

// responded has the evacuation go on itself, and says so in the object before it does.
func responded(s Snapshot) Decision {
	r := s.Responders
	status := s.Evacuation.Status.DeepCopy()
	requested(s, status, metav1.ConditionFalse)
	status.Message = r.Words
	if status.ActiveEvacuatorClass == "" {
		status.EvacuationProgressTimestamp, status.ExpectedEvacuationFinishTime = nil, nil
	}
	return Decision{State: StateResponding, Message: r.Words, Status: status, Events: r.Events}
}

// requested sets the condition, and reports whether that is new.
func requested(s Snapshot, status *v1alpha1.EvacuationStatus, is metav1.ConditionStatus) bool {
	return meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionEvictionRequested, Status: is, Reason: s.Responders.Reason, Message: s.Responders.Words,
		LastTransitionTime: metav1.Time{Time: s.Now},
	})
}
