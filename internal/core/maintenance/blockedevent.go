package maintenance

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/event"
)

const maxBlockedNodes = 10

// blockedEvents reports new causes that block the maintenance, on itself and on nodes with a pod.
func (c *conclusion) blockedEvents(m *maintenance, nodes []nodeStatus, d *MaintenanceDecision) []event.Event {
	var events []event.Event
	before, now := meta.FindStatusCondition(m.object.Status.Conditions, v1alpha1.ConditionBlocked), meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionBlocked)
	if now == nil || now.Status != metav1.ConditionTrue {
		return nil
	}
	if before == nil || before.Status != now.Status || before.Reason != now.Reason {
		events = append(events, event.MaintenanceBlocked(m.object, now.Message))
	}
	byName := make(map[string]*nodeStatus, len(nodes))
	for i := range nodes {
		byName[nodes[i].NodeRef.Name] = &nodes[i]
	}
	reported := 0
	for i := range d.Status.NodeStatuses {
		listed := &d.Status.NodeStatuses[i]
		if reported == maxBlockedNodes {
			break
		}
		if found := c.blockedNode(byName[listed.NodeRef.Name], listed.Blockers); len(found) > 0 {
			events = append(events, found...)
			reported++
		}
	}
	return events
}

func (c *conclusion) blockedNode(s *nodeStatus, listed []v1alpha1.Blocker) []event.Event {
	var known []v1alpha1.Blocker
	if s.selection.observed != nil {
		known = s.selection.observed.Blockers
	}
	for i := range listed {
		b := &listed[i]
		same := func(other v1alpha1.Blocker) bool { return other.Type == b.Type }
		if blocker.AtWork(b.Type) || slices.ContainsFunc(known, same) {
			continue
		}
		o := &c.nodes[s.selection.node.index]
		events := []event.Event{event.NodeBlocked(o.object, s.selection.maintenance.name(), blocker.Explain(*b))}
		if pod := o.blockedBy(b.Type, s.selection); pod != nil {
			events = append(events, event.PodBlocked(o.pods[pod.index].object, blocker.Explain(pod.blocker)))
		}
		return events
	}
	return nil
}

func (o *outcome) blockedBy(cause v1alpha1.BlockerType, one *selection) (first *blockedPod) {
	for i := range o.blocked {
		p := &o.blocked[i]
		if p.blocker.Type == cause && one.waitsFor(p.index) && (first == nil || comparePods(o.pods[p.index].object, o.pods[first.index].object) < 0) {
			first = p
		}
	}
	return first
}
