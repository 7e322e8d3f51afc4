package view

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// failureHelp returns what helps a node that failed in a rollout, beside the command of its message.
func failureHelp(rollout string, n *RolloutNode) string {
	cause := command.Of("To find the cause: kubectl ebbtide why node/%s", n.Name)
	if n.Reason == v1alpha1.RolloutNodeWorkTimedOut && n.NodeMaintenance != "" {
		return cause + command.Of(". To give it back as it is: kubectl ebbtide complete nodemaintenance/%s", n.NodeMaintenance)
	}
	return cause + command.Of(". To leave it out: kubectl ebbtide rollout skip %s %s", rollout, n.Name)
}

// RolloutWhy returns lines about the progress of a rollout, what waits and why, and what helps.
func RolloutWhy(s *RolloutStatus) []string {
	lines := []string{fmt.Sprintf("NodeRollout %s is %s: %s", s.Name, s.State, s.Brief())}
	if s.RequestedBy != "" {
		lines = append(lines, "Requested by "+s.RequestedBy+".")
	}
	if s.Outdated {
		lines = append(lines, "Its controller has not seen its current spec yet.")
	}
	for i := range s.Waiting {
		lines = append(lines, s.Waiting[i].Sentence())
	}
	for i := range s.Failed {
		n := &s.Failed[i]
		lines = append(lines, fmt.Sprintf("Node %s failed, %s", n.Name, n.text()), n.Suggestion)
	}
	for i := range s.Working {
		n := &s.Working[i]
		line := fmt.Sprintf("Node %s: %s", n.Name, n.text())
		if n.Reason == v1alpha1.RolloutNodeDraining && n.NodeMaintenance != "" {
			line += command.Of(" To see its blockers: kubectl ebbtide why nodemaintenance/%s", n.NodeMaintenance)
		}
		lines = append(lines, line)
	}
	if help := s.Help(); help != "" {
		lines = append(lines, help)
	}
	return lines
}

// Help returns the command for a rollout that waits for a user.
func (s *RolloutStatus) Help() string {
	switch {
	case s.State == StatePaused:
		return command.Of("To continue: kubectl ebbtide rollout resume %s", s.Name)
	case s.After == v1alpha1.AfterStayDrained && s.State == StateComplete && s.DoneCount > 0 && !s.Returned:
		return command.Of("To return its nodes to service: kubectl ebbtide complete noderollout/%s", s.Name)
	}
	return ""
}

// Sentence returns the number of the nodes, some names, and why they wait.
func (w *RolloutWait) Sentence() string {
	names := ""
	if len(w.Nodes) > 0 {
		names = " (" + phrase.Some(w.Nodes, maxShownNodes)
		if more := w.NodeCount - len(w.Nodes); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		names += ")"
	}
	return fmt.Sprintf("%s%s. %s", phrase.Count(w.NodeCount, "node waits", "nodes wait"), names, reasonAndMessage(w.Reason, w.Message))
}

// maxShownNodes is the number of nodes that the status of a rollout lists for each reason.
const maxShownNodes = 5

// rolloutLines returns what rollouts report of a node that they select.
func rolloutLines(node *corev1.Node, rollouts []*v1alpha1.NodeRollout) (lines []string) {
	for _, r := range rollouts {
		if line := rolloutLine(node, r); line != "" {
			lines = append(lines, line)
		}
		if len(lines) == maxMaintenances {
			break
		}
	}
	return lines
}

// rolloutLine returns what a rollout reports of a node; empty if it does not select the node, or is
// complete without a failure of the node.
func rolloutLine(node *corev1.Node, r *v1alpha1.NodeRollout) string {
	shown := RolloutOf(r)
	is := func(n RolloutNode) bool { return n.Name == node.Name }
	if at := slices.IndexFunc(shown.Failed, is); at >= 0 {
		n := &shown.Failed[at]
		return fmt.Sprintf("It failed in NodeRollout %s, %s", r.Name, n.text())
	}
	if at := slices.IndexFunc(shown.Working, is); at >= 0 {
		return fmt.Sprintf("NodeRollout %s has it under maintenance. %s", r.Name, shown.Working[at].text())
	}
	for i := range shown.Waiting {
		if w := &shown.Waiting[i]; slices.Contains(w.Nodes, node.Name) {
			return fmt.Sprintf("It waits in NodeRollout %s. %s", r.Name, reasonAndMessage(w.Reason, w.Message))
		}
	}
	selected, err := maintenance.Matching(&v1alpha1.NodeMaintenanceSpec{NodeSelector: r.Spec.NodeSelector}, []*corev1.Node{node})
	if err != nil || len(selected) == 0 || shown.WaitingCount == 0 || shown.State == StateComplete {
		return ""
	}
	return unlisted(node, r, &shown)
}

// unlisted describes a node that a rollout selects and does not list.
func unlisted(node *corev1.Node, r *v1alpha1.NodeRollout, shown *RolloutStatus) string {
	if of := slices.IndexFunc(r.Spec.Nodes, func(n v1alpha1.RolloutNodeSpec) bool { return n.Name == node.Name }); of >= 0 && r.Spec.Nodes[of].Skip {
		return fmt.Sprintf("NodeRollout %s skips it.", r.Name)
	}
	open := slices.DeleteFunc(slices.Clone(shown.Waiting), func(w RolloutWait) bool { return w.NodeCount <= len(w.Nodes) })
	if len(open) == 0 {
		return ""
	}
	see := command.Of("kubectl ebbtide rollout status %s", r.Name)
	if len(open) == 1 {
		return fmt.Sprintf("NodeRollout %s selects it. If it is not done, it waits. %s To see the rollout: %s", r.Name, reasonAndMessage(open[0].Reason, open[0].Message), see)
	}
	var reasons []string
	for i := range open {
		reasons = append(reasons, open[i].Reason)
	}
	return fmt.Sprintf("NodeRollout %s selects it. If it is not done, it waits for one of these reasons: %s. To see which nodes wait for which: %s",
		r.Name, strings.Join(reasons, ", "), see)
}
