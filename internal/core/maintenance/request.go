package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

func (p Pod) requestState() evictionrequest.RequestState {
	return evictionrequest.RequestStateOf(p.Request, p.Object)
}

// mechanismOf chooses between an Evacuation and an EvictionRequest.
func (s *observation) mechanismOf(p *pod) evictionrequest.Mechanism {
	if p.asked || !evictionrequest.Requestable(p.object) {
		return evictionrequest.ByEvacuation
	}
	return s.Requester.Mechanism(p.requestState, s.unanswered(p))
}

func (s *observation) unanswered(p *pod) bool {
	return p.requestState == evictionrequest.Asked && !s.ClockSkewed && s.Requester.Unanswered(p.request)
}

// undecidedReason returns why the mechanism is unknown; empty if it is known or an event tells.
func (s *observation) undecidedReason(p *pod) string {
	switch {
	case p.mechanism != evictionrequest.Undecided:
		return ""
	case p.requestState == evictionrequest.Withdrawn:
		return fmt.Sprintf("its EvictionRequest %s was withdrawn, and is to be deleted before there is another one", p.request.Name)
	}
	return s.Requester.Unknown
}

func (p *pod) isLeaving() bool {
	return p.evacuation != nil || p.requestState == evictionrequest.Asked
}

// needsRequest reports whether the pod must be requested to leave, but not while an old Evacuation
// is deleted.
func (p *pod) needsRequest() bool {
	switch p.mechanism {
	case evictionrequest.ByRequest:
		return p.requestState == evictionrequest.Unasked
	case evictionrequest.ByEvacuation:
		return !p.asked && (p.evacuation == nil || p.evacuation.DeletionTimestamp == nil)
	}
	return false
}

// requests request the due pods to leave, the first entries of the ruling plan first.
func (o *outcome) requests() []Request {
	var due []*pod
	for i := range o.pods {
		if p := &o.pods[i]; p.needsRequest() && o.due(i) {
			p.entry = o.ruling.Plan.First(p.Subject, o.ruling.Plan.Len())
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *pod) int { return cmp.Or(cmp.Compare(a.entry, b.entry), comparePods(a.object, b.object)) })
	requests := make([]Request, 0, len(due))
	for _, p := range due {
		events := o.warnings(p)
		if p.mechanism == evictionrequest.ByRequest {
			requests = append(requests, Request{Pod: p.object, EvictionRequest: evictionrequest.New(p.object), Events: events})
			continue
		}
		if p.requestState == evictionrequest.Taken && evictionrequest.Requestable(p.object) {
			events = append(events, event.EvictionRequestNameTaken(p.object, evictionrequest.NameFor(p.object.UID)))
		}
		requests = append(requests, Request{Pod: p.object, Evacuation: p.evacuation, Events: events})
	}
	return requests
}

// warnings report the labels of a pod that are not understood or not granted.
func (o *outcome) warnings(p *pod) []event.Event {
	var events []event.Event
	if _, problems := podclass.DrainLabel(p.object); len(problems) > 0 {
		events = append(events, event.DrainLabelIgnored(p.object, problems[0].Message))
	}
	if o.inPlace == nil {
		return events
	}
	if _, problems := podclass.OnUpgrade(p.object); len(problems) > 0 {
		return append(events, event.OnUpgradeLabelIgnored(p.object, problems[0].Message))
	}
	if p.staying.Surplus != "" {
		return append(events, event.TooManyBudgets(p.object, p.staying.Surplus))
	}
	// The longest downtime for which the pod does not stay although its label asks for it.
	var longest *maintenance
	var downtime time.Duration
	for _, one := range o.drains {
		if m := one.maintenance; p.staying.Stays && m.inPlace != nil && !m.keeps(p) && m.downtime > downtime {
			longest, downtime = m, m.downtime
		}
	}
	if longest != nil {
		events = append(events, event.TolerationTooShort(p.object, event.ShortToleration{
			Taint: p.staying.Taint, Endured: p.staying.Endurance, Needed: downtime, Maintenance: longest.name(),
		}))
	}
	return events
}
