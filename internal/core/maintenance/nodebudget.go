package maintenance

import (
	"fmt"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// admissionTime is the time after which a node that waits for a NodeBudget counts as blocked. If the
// budget has room, its nodes are admitted earlier.
const admissionTime = 3 * time.Second

// Limited reports whether NodeBudgets can keep a maintenance from its nodes. They have admitted those
// of rollouts before, and the nodes of a deleted Machine or of a shutdown go anyway.
func Limited(m *v1alpha1.NodeMaintenance) bool {
	switch Stage(m) {
	case v1alpha1.StageCordon, v1alpha1.StageDrain:
		return m.Labels[v1alpha1.RolloutLabel] == "" && !bridge.OfMachine(m) && OfShutdown(m) == ""
	default:
		return false
	}
}

// addWaiting adds the nodes of a maintenance that wait for a NodeBudget.
func (c *conclusion) addWaiting(m *maintenance, statuses []nodeStatus, sum *status.Totals) []nodeStatus {
	for _, one := range m.waiting {
		s := nodeStatus{selection: one}
		s.Targets, s.NodeRef.Name = &noTargets, one.node.name()
		if m.stage == v1alpha1.StageDrain {
			s.State, s.DrainMessage = v1alpha1.NodeStateBlocked, "Waiting for a NodeBudget."
			if one.node.hold.Budget != "" {
				s.DrainMessage = fmt.Sprintf("Waiting for NodeBudget %s.", one.node.hold.Budget)
			}
		}
		if !c.Now.Before(c.blockedFrom(m)) {
			s.Blockers = []v1alpha1.Blocker{blocker.NodeBudget(one.node.hold)}
			s.obstacles = obstacles{shown: s.Blockers, kinds: status.Obstacles(s.Blockers)}
			for _, more := range s.obstacles.kinds {
				sum.Obstacles = status.Add(sum.Obstacles, more)
			}
		}
		sum.Nodes++
		statuses = append(statuses, s)
	}
	if len(m.waiting) > 0 {
		slices.SortFunc(statuses, func(a, b nodeStatus) int { return a.selection.node.index - b.selection.node.index })
	}
	return statuses
}

// blockedFrom returns from when the waiting nodes of a maintenance count as blocked.
func (s *observation) blockedFrom(m *maintenance) time.Time {
	if m.starts {
		return s.Now.Add(admissionTime)
	}
	for _, stage := range m.object.Status.StageStatuses {
		if stage.Name == m.stage && stage.StartTimestamp != nil {
			return stage.StartTimestamp.Add(admissionTime)
		}
	}
	return m.object.CreationTimestamp.Add(admissionTime)
}
