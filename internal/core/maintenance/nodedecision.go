package maintenance

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// nodeDecision is what is done to a node now; any is false if that is nothing.
func (c *conclusion) nodeDecision(o *outcome) (d NodeDecision, any bool) {
	d = NodeDecision{
		Node: o.object, Cordon: o.cordon.Change, DrainRecord: o.lock.Change, Withdraw: o.withdraw, WithdrawRequests: c.tellUnanswered(o),
		Events: o.cordon.Events, Evacuate: o.requests(), Delete: c.deletionsOf(o),
	}
	if !o.unclear {
		announced := announcement.Decide(o.announcement(), c.Now)
		d.Conditions, d.Retract, d.Pinned = announced.Changed, announced.Removed, announced.Pinned
	}
	if len(o.missed) > 0 {
		d.Events, d.MissesAgent = append(slices.Clip(d.Events), o.missed...), true
	}
	if o.leavesForbidden() {
		d.Events = append(d.Events, event.CancellationForbidden(o.object, o.forbidden))
		for _, m := range c.involved(o) {
			if hasStarted(m.object, v1alpha1.StageDrain) && !slices.ContainsFunc(o.drains, func(one *selection) bool { return one.maintenance == m }) {
				d.Events = append(d.Events, event.CancellationForbiddenOf(m.object, o.name(), o.forbidden))
			}
		}
	}
	c.postpone(&d)
	if d.Cordon == nil && d.DrainRecord == nil && len(d.Evacuate)+len(d.Delete)+len(d.Withdraw)+len(d.WithdrawRequests)+len(d.Conditions)+len(d.Retract)+len(d.Events) == 0 {
		return d, false
	}
	for _, m := range c.involved(o) {
		d.Maintenances = append(d.Maintenances, m.name())
	}
	return d, true
}

// announcement is what there is to announce on a node.
func (o *outcome) announcement() announcement.Node {
	n := announcement.Node{Object: o.object}
	for _, one := range o.selections {
		m := announcement.Maintenance{Name: one.maintenance.name(), Reason: one.maintenance.object.Spec.Reason}
		switch one.maintenance.stage {
		case v1alpha1.StageComplete:
			continue
		case v1alpha1.StageDrain:
			m.Drained, m.Back = o.drained(one), o.back(one)
			n.Drains = append(n.Drains, m)
		}
		n.Planned = append(n.Planned, m)
	}
	return n
}

// postpone leaves out what was refused and is not to be tried again yet. Where the
// node cannot be cordoned no pod is moved: it might come back.
func (c *conclusion) postpone(d *NodeDecision) {
	if len(c.Refused) == 0 {
		return
	}
	waits := func(w Write) bool {
		refusal, refused := c.Refused[w]
		return refused && c.Now.Before(refusal.Again)
	}
	if d.Cordon != nil && waits(Write{Kind: WriteCordon, Node: d.Node.Name}) {
		d.Cordon, d.DrainRecord, d.Evacuate, d.Delete, d.Events = nil, nil, nil, nil, nil
	}
	if waits(Write{Kind: WriteDrainRecord, Node: d.Node.Name}) {
		d.DrainRecord = nil
	}
	d.Evacuate = slices.DeleteFunc(d.Evacuate, func(r Request) bool {
		return waits(Write{Kind: WriteEvacuation, Pod: r.Pod.UID})
	})
	d.Delete = slices.DeleteFunc(d.Delete, func(one Deletion) bool {
		return waits(Write{Kind: WriteDeletion, Pod: one.Pod.UID})
	})
	d.Withdraw = slices.DeleteFunc(slices.Clone(d.Withdraw), func(e *v1alpha1.Evacuation) bool {
		return waits(Write{Kind: WriteWithdrawal, Pod: e.Spec.PodRef.UID})
	})
	d.WithdrawRequests = slices.DeleteFunc(slices.Clone(d.WithdrawRequests), func(w RequestWithdrawal) bool { return waits(w.Write()) })
}

// involved are, oldest first, those whose record goes before the acts
// on the node: those that select it and those that let go of it.
func (c *conclusion) involved(o *outcome) []*maintenance {
	ages := make([]int, 0, len(o.selections))
	for _, one := range o.selections {
		ages = append(ages, one.maintenance.age)
	}
	ages = append(ages, o.listing...)
	slices.Sort(ages)
	var all []*maintenance
	for _, age := range slices.Compact(ages) {
		if m := c.maintenances[age]; m.stage != v1alpha1.StageIdle && !m.finished {
			all = append(all, m)
		}
	}
	return all
}

// leavesForbidden returns true in the decision in which the Evacuations that may not
// be withdrawn lose their maintenance.
func (o *outcome) leavesForbidden() bool {
	return len(o.forbidden) > 0 && (o.cordon.Change != nil || slices.ContainsFunc(o.selections, func(one *selection) bool {
		return one.maintenance.stage == v1alpha1.StageComplete && one.maintenance.starts
	}))
}

// requests ask the pods to leave whose turn it is and that we have not asked yet, those of the ruling plan's first entries first. An Evacuation that is being
// deleted takes no finalizer; when it is gone its pod gets another one.
func (o *outcome) requests() []Request {
	type ranked struct {
		entry int
		*pod
	}
	var due []ranked
	for i := range o.pods {
		p := &o.pods[i]
		if !p.toAsk() || !o.due(i) {
			continue
		}
		due = append(due, ranked{o.ruling.Plan.First(p.Subject, o.ruling.Plan.Len()), p})
	}
	slices.SortFunc(due, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.entry, b.entry), comparePods(a.object, b.object)) })
	requests := make([]Request, 0, len(due))
	for _, one := range due {
		requests = append(requests, o.request(one.pod))
	}
	return requests
}

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// warnings say what a pod asks for that is not understood or not granted.
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
	if longest := o.longestWithout(p); longest != nil {
		events = append(events, event.TolerationTooShort(p.object, event.ShortToleration{
			Taint: p.staying.Taint, Endured: p.staying.Endurance, Needed: longest.downtime, Maintenance: longest.name(),
		}))
	}
	return events
}

// longestWithout is the maintenance in place of the longest downtime that does not
// leave the pod on the node although the pod asks for it; nil if there is none.
func (o *outcome) longestWithout(p *pod) *maintenance {
	if !p.staying.Stays {
		return nil
	}
	var longest *maintenance
	var downtime time.Duration
	for _, one := range o.drains {
		if m := one.maintenance; m.inPlace != nil && !m.keeps(p) && m.downtime > downtime {
			longest, downtime = m, m.downtime
		}
	}
	return longest
}
