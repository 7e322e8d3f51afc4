package maintenance

import (
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/plan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

type nodeStatus struct {
	status.Node

	selection *selection
	obstacles obstacles
}

var noTargets status.Targets

func (c *conclusion) nodeStatuses(m *maintenance) ([]nodeStatus, status.Totals) {
	statuses := make([]nodeStatus, len(m.selections))
	sum := status.Totals{GivenBack: m.completedNodes()}
	for i, one := range m.selections {
		o := &c.nodes[one.node.index]
		s := &statuses[i]
		s.selection, s.Targets, s.obstacles = one, &noTargets, o.obstaclesFor(one)
		s.NodeRef.Name, s.Blockers = one.node.name(), s.obstacles.shown
		s.PodsPendingEvacuation, s.PodsEvacuating, s.PodsRetained = one.pending, one.evacuating, one.retained
		s.Drained = o.drained(one)
		if m.stage == v1alpha1.StageDrain {
			s.DrainedTime = one.drainedTime(s.Drained, c.Now)
			s.Targets = &o.target.shown
			if len(m.selections) <= status.PlainNodes && one.retained > 0 {
				s.Retained = o.retainedBy(one)
			}
			e := c.explain(o, one)
			s.State, s.DrainMessage, s.AwaitedNodes = e.State, e.Message, e.AwaitedNodes
			progress := &o.progress[one.place]
			s.FastForwardedBy = progress.ForwardedBy
			if progress.Under > 0 {
				s.DrainMessage += o.waveText()
			}
		}
		if m.stage == v1alpha1.StageIdle {
			s.plan(c.Planned[m.name()], c.planned)
		}
		add(&sum, o, s)
	}
	c.addLeft(&sum, m)
	return c.addWaiting(m, statuses, &sum), sum
}

// plan fills in what the maintenance would do on the node. Its blockers block nothing yet.
func (s *nodeStatus) plan(planned map[string]v1alpha1.NodeMaintenanceNodeStatus, targets map[string]*status.Targets) {
	would, known := planned[s.NodeRef.Name]
	if !known {
		return
	}
	s.NodeMaintenanceNodeStatus = would
	key := plan.Key(would.DrainTargets)
	if targets[key] == nil {
		lines := status.Render(would.DrainTargets)
		targets[key] = &status.Targets{Key: drainplan.NewSet(drainplan.Parse(would.DrainTargets)...).Key(), Full: lines, Brief: lines}
	}
	s.Targets = targets[key]
}

// addLeft adds blocked nodes that have left the maintenance and its status.
func (c *conclusion) addLeft(sum *status.Totals, m *maintenance) {
	for _, n := range m.listed {
		o := &c.nodes[n.index]
		if slices.ContainsFunc(n.selections, func(one *selection) bool { return one.maintenance == m }) {
			continue
		}
		sum.Awaited += ones(m.stage == v1alpha1.StageComplete && o.cordon.Awaited)
		for _, more := range status.Obstacles(o.refusals) {
			sum.Obstacles = status.Add(sum.Obstacles, more)
		}
	}
}

// listed returns the nodes in a status: all, or after completion those that are still blocked.
func listed(m *maintenance, nodes []nodeStatus) []*status.Node {
	var all []*status.Node
	for i := range nodes {
		if m.stage != v1alpha1.StageComplete || len(nodes[i].Blockers) > 0 {
			all = append(all, &nodes[i].Node)
		}
	}
	return all
}
