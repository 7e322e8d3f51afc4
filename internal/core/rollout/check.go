package rollout

import (
	"slices"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
)

// refusalByRequirement returns which requirement of the rollout a node does not meet. The cheaper one
// is asked first.
func (b *budget) refusalByRequirement(u *unit) refusal {
	if slices.Contains(b.object.Spec.Requires, v1alpha1.RequiresNoLoss) {
		closed := refusal{v1alpha1.RolloutWaitsForLoss, "A drain would lose pods or data for good. To see which: " + command.Of("kubectl ebbtide plan %s", u.Name)}
		q := Question{Requirement: v1alpha1.RequiresNoLoss, Node: u.Name}
		if refused := b.judgeAnswer(q, "Whether a drain would lose pods or data", closed); refused.reason != "" {
			return refused
		}
	}
	if slices.Contains(b.object.Spec.Requires, v1alpha1.RequiresRoom) {
		closed := refusal{v1alpha1.RolloutWaitsForRoom, "Not all pods would fit on other nodes. To see which: " + command.Of("kubectl ebbtide plan %s", u.Name)}
		// A start changes the question, so that the next node is checked with this one drained.
		q := Question{Requirement: v1alpha1.RequiresRoom, Node: u.Name, Leaving: b.leavingNodes()}
		return b.judgeAnswer(q, "Whether the pods would fit on other nodes", closed)
	}
	return refusal{}
}

// leavingNodes returns the names of the nodes under maintenance.
func (b *budget) leavingNodes() string {
	if b.leavingAfter == len(b.starts) {
		return b.leaving
	}
	var names []string
	for _, n := range b.nodes {
		if len(n.holders) > 0 || n.startedBy != "" {
			names = append(names, n.Name)
		}
	}
	b.leaving, b.leavingAfter = strings.Join(names, ","), len(b.starts)
	return b.leaving
}
