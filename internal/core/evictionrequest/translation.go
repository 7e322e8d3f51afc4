package evictionrequest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// soon is how long an EvictionRequest may be missing before anything is said of it.
const soon = 5 * time.Second

// Translation is an Evacuation and the EvictionRequest that its pod is asked by as well, if it
// names responders: they come before the evacuators.
type Translation struct {
	// Prospect is what is known of EvictionRequests.
	Prospect Prospect
	// Evacuation and Pod are nil if there are none.
	Evacuation *v1alpha1.Evacuation
	Pod        *corev1.Pod
	// Request is what has the name of the request, Eviction what has come of it as Relevant
	// has it; nil if there is none.
	Request  *lifecyclev1alpha1.EvictionRequest
	Eviction *lifecyclev1alpha1.Eviction
}

// Disposal decides what becomes of the request. It is there while somebody asks for the
// Evacuation whose wish it is; gone is for how long the pod is known to be gone; nil if it
// is there.
func (t Translation) Disposal(gone *time.Duration) Disposal {
	request, wanted := t.Request, t.wanted()
	if request == nil || !Evacuations.Owns(request) {
		leaves := wanted && (t.Pod.DeletionTimestamp != nil || podclass.Terminal(t.Pod))
		if request == nil && wanted && !leaves && t.way(Unasked) == ByRequest && !evacuation.RespondersOver(t.Evacuation) {
			return Disposal{Create: Evacuations.New(t.Pod)}
		}
		return Disposal{}
	}
	asks := request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction && request.DeletionTimestamp == nil
	unanswered := asks && t.Prospect.Unanswered(request)
	if asks && gone == nil && (unanswered || !wanted) {
		return Disposal{Record: WithdrawnAt(request, t.Prospect.Now, unanswered && wanted), RequeueAfter: KeptFor}
	}
	d := Dispose(request, t.Prospect.Now, gone)
	if asks && AwaitsAnswer(request) && d.RequeueAfter == 0 {
		d.RequeueAfter = max(t.Prospect.Left(request), 0)
	}
	return d
}

// wanted reports whether somebody asks for the Evacuation whose wish the request is, for a
// pod that it can be made for. It is while the pod terminates: who withdraws then would have
// the Eviction fail that has just succeeded.
func (t Translation) wanted() bool {
	e, pod := t.Evacuation, t.Pod
	return e != nil && pod != nil && e.Spec.PodRef.UID == pod.UID && e.Name == evacuation.Name(pod) && evacuation.AskedByOthers(e) &&
		Requestable(pod)
}

func (t Translation) way(standing Standing) Way {
	return t.Prospect.Way(standing, standing == Asked && t.Prospect.Unanswered(t.Request))
}

// Responders are what the Evacuation is to know of the responders of its pod.
func (t Translation) Responders() evacuation.Responders {
	if !t.wanted() {
		return evacuation.Responders{}
	}
	standing := Evacuations.StandingOf(t.Request, t.Pod)
	switch t.way(standing) {
	case ByEvacuation:
		return t.without(standing)
	case ByNobody:
		r := evacuation.Responders{Phase: evacuation.RespondersAwaited}
		switch told := meta.FindStatusCondition(t.Evacuation.Status.Conditions, v1alpha1.ConditionEvictionRequested); {
		case t.Prospect.Unknown != "" && told == nil:
			// A manager that has just begun does not tell all of what it knows in a moment.
			r.Words = t.Prospect.Unknown
		case standing == Withdrawn:
			r.Words = fmt.Sprintf("The responders of pod %s are asked again when EvictionRequest %s is gone, which was withdrawn.", t.Pod.Name, t.Request.Name)
		}
		return r
	}
	if standing == Unasked {
		return t.unasked()
	}
	return t.asked()
}

// without is why the responders are not asked.
func (t Translation) without(standing Standing) evacuation.Responders {
	name := Evacuations.NameFor(t.Pod.UID)
	switch {
	case !t.Prospect.Served:
		return t.over(v1alpha1.ReasonRequestsNotServed, "EvictionRequests are not served: pod %s is evacuated without its responders.", t.Pod.Name)
	case standing == Taken:
		r := t.over(v1alpha1.ReasonRequestNameTaken, "Pod %s is evacuated without its responders: something else has the name of EvictionRequest %s.", t.Pod.Name, name)
		r.Events = []event.Event{event.EvictionRequestNameTaken(t.Pod, name)}
		return r
	}
	r := t.over(v1alpha1.ReasonRequestUnanswered, "Nobody answers EvictionRequests: pod %s is evacuated without its responders.", t.Pod.Name)
	r.Events = []event.Event{event.EvictionRequestUnanswered(t.Pod)}
	return r
}

func (t Translation) over(reason, format string, words ...any) evacuation.Responders {
	return evacuation.Responders{Phase: evacuation.RespondersDone, Reason: reason, Words: fmt.Sprintf(format, words...)}
}

// unasked says something only if the request is long in coming.
func (t Translation) unasked() evacuation.Responders {
	r := evacuation.Responders{Phase: evacuation.RespondersAwaited}
	if r.RequeueAfter = t.Evacuation.CreationTimestamp.Add(soon).Sub(t.Prospect.Now); r.RequeueAfter <= 0 {
		r.RequeueAfter = 0
		r.Words = fmt.Sprintf("The responders of pod %s are to be asked by EvictionRequest %s, which is not there yet: the events of the pod say why.",
			t.Pod.Name, Evacuations.NameFor(t.Pod.UID))
	}
	return r
}

// asked is how far the responders are that have been asked.
func (t Translation) asked() evacuation.Responders {
	if failure := Failure(t.Request); failure != nil && failure.Reason != string(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters) {
		return t.over(v1alpha1.ReasonRequestFailed, "Pod %s is evacuated without its responders: EvictionRequest %s has failed, %s: %s", t.Pod.Name, t.Request.Name,
			failure.Reason, excerpt.Line(failure.Message, maxWords))
	}
	awaited := evacuation.Responders{Phase: evacuation.RespondersAwaited}
	if AwaitsAnswer(t.Request) && !t.Prospect.Acting {
		awaited.RequeueAfter = max(t.Prospect.Left(t.Request), 0)
	}
	if t.Eviction == nil || Final(&t.Eviction.Status) {
		return awaited
	}
	active := Active(&t.Eviction.Status)
	switch {
	case active == nil:
		return awaited
	case active.Name == DefaultEvictor:
		return t.over(v1alpha1.ReasonRespondersDone, "The responders of pod %s have had their turns in Eviction %s.", t.Pod.Name, t.Eviction.Name)
	}
	r := evacuation.Responders{
		Phase: evacuation.RespondersActive, Reason: v1alpha1.ReasonResponderActive,
		Words: fmt.Sprintf("It is the turn of responder %s in Eviction %s.", excerpt.Line(active.Name, maxWords), t.Eviction.Name),
		Sign:  lastSign(active), Finish: active.ExpectedCompletionTime,
	}
	if active.Message != nil {
		r.Says = excerpt.Line(*active.Message, maxWords)
	}
	return r
}
