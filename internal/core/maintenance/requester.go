package maintenance

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// maxUnanswered is how many unanswered EvictionRequests of one decision have an event.
const maxUnanswered = 100

// RequestWithdrawal takes an EvictionRequest of ours back.
type RequestWithdrawal struct {
	// Request is it as it was observed, Withdrawn as it is to be written.
	Request, Withdrawn *lifecyclev1alpha1.EvictionRequest
	// Unanswered is the pod that nobody has answered for; nil if that is not why.
	Unanswered *corev1.Pod
	// Events become true with the write.
	Events []event.Event
}

// Write is the name of the write.
func (w RequestWithdrawal) Write() Write {
	target, _ := evictionrequest.TargetOf(w.Request)
	return Write{Kind: WriteRequestWithdrawal, Pod: target.UID}
}

// standing is what the pod was asked by what has the name of our EvictionRequest for it.
func (p Pod) standing() evictionrequest.RequestState {
	return evictionrequest.RequestStateOf(p.Request, p.Object)
}

// mechanismOf chooses by what a pod is asked to leave.
func (r *reader) mechanismOf(p *pod) evictionrequest.Mechanism {
	if p.asked || !evictionrequest.Requestable(p.object) {
		return evictionrequest.ByEvacuation
	}
	return r.Requester.Mechanism(p.standing, r.unanswered(p))
}

// unanswered reports whether nobody answers the EvictionRequest of a pod.
func (s *observation) unanswered(p *pod) bool {
	return p.standing == evictionrequest.Asked && !s.ClockSkewed && s.Requester.Unanswered(p.request)
}

// awaitsAnswer reports whether the pod was asked and nobody has answered yet.
func (p *pod) awaitsAnswer() bool {
	return p.standing == evictionrequest.Asked && evictionrequest.AwaitsAnswer(p.request) && !p.request.CreationTimestamp.IsZero()
}

// waitsFor is why a pod that is to leave is asked by nobody yet; empty if there is nothing to
// say: who does not answer is told of by an event.
func (s *observation) waitsFor(p *pod) string {
	switch {
	case p.mechanism != evictionrequest.Undecided:
		return ""
	case p.standing == evictionrequest.Withdrawn:
		return fmt.Sprintf("its EvictionRequest %s was withdrawn, and is to be deleted before there is another one", p.request.Name)
	}
	return s.Requester.Unknown
}

// underWay reports whether somebody has asked the pod to leave.
func (p *pod) underWay() bool {
	return p.evacuation != nil || p.standing == evictionrequest.Asked
}

// toAsk reports whether the pod has to be asked when it is its turn, by what it is to leave.
func (p *pod) toAsk() bool {
	switch p.mechanism {
	case evictionrequest.ByRequest:
		return p.standing == evictionrequest.Unasked
	case evictionrequest.ByEvacuation:
		return !p.asked && (p.evacuation == nil || p.evacuation.DeletionTimestamp == nil)
	}
	return false
}

// request asks a pod to leave by what it is to leave by.
func (o *outcome) request(p *pod) Request {
	events := o.warnings(p)
	if p.mechanism == evictionrequest.ByEvacuation {
		if p.standing == evictionrequest.Taken && evictionrequest.Requestable(p.object) {
			events = append(events, event.EvictionRequestNameTaken(p.object, evictionrequest.NameFor(p.object.UID)))
		}
		return Request{Pod: p.object, Evacuation: p.evacuation, Events: events}
	}
	return Request{Pod: p.object, EvictionRequest: evictionrequest.New(p.object), Events: events}
}

// withdrawRequest finds out whether the pod at this place is asked in vain, or twice.
func (t *targeted) withdrawRequest(o *outcome, i int) {
	p := &o.pods[i]
	switch {
	case p.standing != evictionrequest.Asked:
	case !o.leaves(i), p.asked:
		t.withdrawAsked(o, p.request, nil)
	case t.unanswered(p):
		t.withdrawAsked(o, p.request, p.object)
	}
}

// withdrawAsked takes a request back; unanswered is nil, or the pod that nobody has answered for.
func (t *targeted) withdrawAsked(o *outcome, request *lifecyclev1alpha1.EvictionRequest, unanswered *corev1.Pod) {
	o.withdrawRequests = append(o.withdrawRequests, RequestWithdrawal{
		Request: request, Withdrawn: evictionrequest.WithdrawnAt(request, t.Requester.Now, unanswered != nil), Unanswered: unanswered,
	})
}

// tellUnanswered are the withdrawals of a node with their events, of which a decision has
// no more than administrators read.
func (c *conclusion) tellUnanswered(o *outcome) []RequestWithdrawal {
	slices.SortFunc(o.withdrawRequests, func(a, b RequestWithdrawal) int {
		return cmp.Or(cmp.Compare(a.Request.Namespace, b.Request.Namespace), cmp.Compare(a.Request.Name, b.Request.Name))
	})
	for i := range o.withdrawRequests {
		if w := &o.withdrawRequests[i]; w.Unanswered != nil && c.unansweredTold < maxUnanswered {
			c.unansweredTold++
			w.Events = []event.Event{event.EvictionRequestUnanswered(w.Unanswered)}
		}
	}
	return o.withdrawRequests
}
