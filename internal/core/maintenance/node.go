package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// nodeDecisions decides what is done to every node.
func (p *pass) nodeDecisions() []NodeDecision {
	var decisions []NodeDecision
	for _, s := range p.sites {
		d := NodeDecision{
			Node:       s.node,
			Cordon:     s.cordon.change,
			Record:     s.lock.change,
			Withdraw:   s.withdraw,
			Events:     s.cordon.events,
		}
		d.Conditions, d.Retract = p.nodeConditions(s)
		d.Evacuate = s.evacuate()
		if s.tellForbidden() {
			d.Events = append(d.Events, event.CancellationForbidden(s.node, s.forbidden))
		}
		if d.Cordon == nil && d.Record == nil && len(d.Evacuate)+len(d.Withdraw)+len(d.Conditions)+len(d.Retract)+len(d.Events) == 0 {
			continue
		}
		d.Maintenances = p.involved(s)
		decisions = append(decisions, d)
	}
	return decisions
}

// involved are the names, oldest first, of those whose record goes before the
// acts on the site: those that match it and those that let go of it.
func (p *pass) involved(s *site) []string {
	var names []string
	for _, i := range p.intents {
		matches := slices.ContainsFunc(s.shares, func(one *share) bool { return one.intent == i })
		if i.stage != v1alpha1.StageIdle && !i.finished && (matches || s.cordon.ledger.lists(i.name())) {
			names = append(names, i.name())
		}
	}
	return names
}

// evacuate lists the pods that need an Evacuation of ours, those of the ruling
// plan's first entries first.
func (s *site) evacuate() []Request {
	asked := s.unasked()
	slices.SortFunc(asked, func(a, b turn) int { return cmp.Or(cmp.Compare(a.entry, b.entry), comparePods(a.pod.pod, b.pod.pod)) })
	requests := make([]Request, 0, len(asked))
	for _, one := range asked {
		request := Request{Pod: one.pod.pod, Evacuation: one.pod.evacuation}
		if _, problems := podclass.DrainLabel(one.pod.pod); len(problems) > 0 {
			request.Events = append(request.Events, event.DrainLabelIgnored(one.pod.pod, problems[0].Message))
		}
		if told, tell := s.tellStaying(one.pod); tell {
			request.Events = append(request.Events, told)
		}
		requests = append(requests, request)
	}
	return requests
}

// turn is a pod and its place in the ruling plan.
type turn struct {
	pod   *subject
	entry int
}

// unasked are the pods that are due and have no Evacuation of ours. An Evacuation that
// is being deleted takes no finalizer; when it is gone its pod gets another one.
func (s *site) unasked() []turn {
	var unasked []turn
	for n := range s.pods {
		pod := &s.pods[n]
		deleting := pod.evacuation != nil && pod.evacuation.DeletionTimestamp != nil
		if s.due(pod) && !ours(pod.evacuation) && !deleting {
			plan := s.ruling.plan
			unasked = append(unasked, turn{pod: pod, entry: plan.First(pod.Subject, plan.Len())})
		}
	}
	return unasked
}

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
