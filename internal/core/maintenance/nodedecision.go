package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
)

func (c *conclusion) nodeDecision(o *outcome) (d NodeDecision, any bool) {
	c.reportUnanswered(o.withdrawRequests)
	d = NodeDecision{
		Node: o.object, Cordon: o.cordon.Change, DrainRecord: o.lock.Change, Withdraw: o.withdrawals, WithdrawRequests: o.withdrawRequests,
		Events: o.cordon.Events, Evacuate: o.requests(), Delete: c.deletionsOf(o),
	}
	if !o.unclear {
		announced := announcement.Decide(o.announcement(), c.Now)
		d.Conditions, d.Retract, d.Pinned = announced.Changed, announced.Removed, announced.Pinned
	}
	if len(o.agentEvents) > 0 {
		d.Events, d.MissesAgent = append(slices.Clip(d.Events), o.agentEvents...), true
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

func (c *conclusion) reportUnanswered(withdrawals []RequestWithdrawal) {
	for i := range withdrawals {
		if w := &withdrawals[i]; w.Unanswered != nil && c.unansweredEvents < maxUnanswered {
			c.unansweredEvents++
			w.Events = []event.Event{event.EvictionRequestUnanswered(w.Unanswered)}
		}
	}
}

func (o *outcome) announcement() announcement.Node {
	n := announcement.Node{Object: o.object}
	for _, m := range o.waits {
		n.Planned = append(n.Planned, announcement.Maintenance{Name: m.name(), Reason: m.object.Spec.Reason})
	}
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

// postpone removes refused writes until they are retried. Without a cordon no pod is moved.
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

// involved returns the maintenances to record before the node is touched, oldest first.
func (c *conclusion) involved(o *outcome) []*maintenance {
	ages := slices.Clone(o.listing)
	for _, one := range o.selections {
		ages = append(ages, one.maintenance.age)
	}
	slices.Sort(ages)
	var all []*maintenance
	for _, age := range slices.Compact(ages) {
		if m := c.maintenances[age]; m.stage != v1alpha1.StageIdle && !m.finished {
			all = append(all, m)
		}
	}
	return all
}

// leavesForbidden reports whether uncancellable Evacuations lose their maintenance now.
func (o *outcome) leavesForbidden() bool {
	return len(o.forbidden) > 0 && (o.cordon.Change != nil || slices.ContainsFunc(o.selections, func(one *selection) bool {
		return one.maintenance.stage == v1alpha1.StageComplete && one.maintenance.starts
	}))
}

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
