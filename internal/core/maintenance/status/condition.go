package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const maxMessage = 4096 // bytes of a condition's message

// Conditions holds those of a maintenance; nil removes one, except Succeeded and a true Returned.
type Conditions struct {
	Drained, PastDeadline, Succeeded, Returned, Blocked *metav1.Condition
}

// Apply returns the conditions of a maintenance as they are to be written.
func (c Conditions) Apply(m *v1alpha1.NodeMaintenance, now time.Time) []metav1.Condition {
	conditions := slices.Clone(m.Status.Conditions)
	for _, one := range []struct {
		conditionType string
		wanted        *metav1.Condition
		stays         bool
	}{
		{v1alpha1.ConditionDrained, c.Drained, false},
		{v1alpha1.ConditionPastDeadline, c.PastDeadline, false},
		{v1alpha1.ConditionSucceeded, c.Succeeded, true},
		{v1alpha1.ConditionReturned, c.Returned, c.Succeeded != nil && meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReturned)},
		{v1alpha1.ConditionBlocked, c.Blocked, false},
	} {
		if one.wanted != nil {
			Set(m, now, &conditions, *one.wanted)
		} else if !one.stays {
			meta.RemoveStatusCondition(&conditions, one.conditionType)
		}
	}
	return conditions
}

// Set puts a condition into a list; its transition time moves with its status only.
func Set(m *v1alpha1.NodeMaintenance, now time.Time, conditions *[]metav1.Condition, condition metav1.Condition) {
	condition.ObservedGeneration = m.Generation
	condition.Message = excerpt.Of(condition.Message, maxMessage)
	condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	meta.SetStatusCondition(conditions, condition)
}

// Ending returns the condition Succeeded of a maintenance in Complete. It is recorded once, before
// the status loses its nodes. Draining is true if the maintenance was in Drain, recorded if
// Complete is in its status already. Late is empty if its deadline has given no nodes back.
func Ending(status *v1alpha1.NodeMaintenanceStatus, draining, recorded bool, late string) metav1.Condition {
	if known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSucceeded); known != nil {
		return *known
	}
	ending := metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}
	drained := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrained)
	switch {
	case late != "":
		ending.Status, ending.Reason, ending.Message = metav1.ConditionFalse, v1alpha1.ReasonDeadlinePassed, late
	case !draining:
		ending.Reason, ending.Message = v1alpha1.ReasonNotDraining, "Complete, was not in stage Drain."
	case drained != nil && drained.Status == metav1.ConditionTrue:
		ending.Reason, ending.Message = v1alpha1.ReasonDrained, "Complete, was drained."
	case drained == nil && recorded:
		// A manager of an older version has completed it without this condition.
		ending.Status, ending.Reason, ending.Message = metav1.ConditionUnknown, v1alpha1.ReasonUnknown, "Complete."
	default:
		ending.Status, ending.Reason = metav1.ConditionFalse, v1alpha1.ReasonCancelled
		ending.Message = fmt.Sprintf("Cancelled, %s.", whatWasLeft(status))
	}
	return ending
}

// whatWasLeft returns why a maintenance was not drained.
func whatWasLeft(status *v1alpha1.NodeMaintenanceStatus) string {
	pods, undrained := int32(0), 0
	for i := range status.NodeStatuses {
		node := &status.NodeStatuses[i]
		left := node.PodsPendingEvacuation + node.PodsEvacuating
		pods += left
		undrained += ones(left > 0)
	}
	were := "were"
	if pods == 1 {
		were = "was"
	}
	text := fmt.Sprintf("%s %s left", phrase.Count(pods, "pod"), were)
	switch listed := len(status.NodeStatuses); {
	case status.NodeCount == 0:
		return "no node was selected"
	case pods == 0:
		return "not all nodes were drained"
	case undrained == listed && listed < int(status.NodeCount):
		return "at least " + text
	default:
		return text
	}
}

// Drained returns the condition Drained of a maintenance in Drain.
func Drained(m *v1alpha1.NodeMaintenance, t Totals, blocked metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDrained}
	if t.Nodes == 0 {
		return drainedNothing(m, t.GivenBack)
	}
	condition.Message = fmt.Sprintf("%d of %s drained, %s left: %d pending evacuation, %d evacuating; %s retained.",
		t.Drained, phrase.Count(t.Nodes, "node"), phrase.Count(t.Left(), "pod"), t.Pending, t.Evacuating, phrase.Count(t.Retained, "pod"))
	if t.Budgets > 0 {
		condition.Message += fmt.Sprintf(" %d of %s locked.", t.Locked, phrase.Count(t.Budgets, "budget"))
	}
	if t.Drained == t.Nodes {
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonDraining
	if blocked.Status == metav1.ConditionTrue {
		condition.Reason = v1alpha1.ReasonBlocked
	}
	if t.Unread > 0 {
		condition.Message += fmt.Sprintf(" The pods of %s could not be read.", phrase.Count(t.Unread, "node"))
	}
	return condition
}

// drainedNothing returns Drained of a maintenance that selects no node. That is no success, as the
// selector may be mistaken. If its nodes are gone without a change of the selector, or all given
// back, they stay what they were.
func drainedNothing(m *v1alpha1.NodeMaintenance, givenBack int) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoNodes,
		Message: "spec.nodeSelector matches no node, so nothing is drained. See the labels of the nodes: kubectl get nodes --show-labels",
	}
	status := &m.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrained)
	gone := status.NodeCount > 0 || before != nil && before.Reason == v1alpha1.ReasonNodesGone
	if !gone || status.ObservedGeneration != m.Generation && givenBack == 0 {
		return condition
	}
	condition.Reason, condition.Message = v1alpha1.ReasonNodesGone, "The nodes that spec.nodeSelector matched are gone, bear other labels or were given back; "
	if before == nil || before.Status != metav1.ConditionTrue {
		condition.Message += "they had not been drained."
		return condition
	}
	condition.Status = metav1.ConditionTrue
	condition.Message += "they had been drained."
	return condition
}

// Blocked returns the condition by the most important obstacle: one of nodes, or of most pods.
func Blocked(obstacles []Obstacle) metav1.Condition {
	if len(obstacles) == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotBlocked,
			Message: "Nothing holds the maintenance up.",
		}
	}
	worst := slices.SortedFunc(slices.Values(obstacles), func(a, b Obstacle) int {
		return cmp.Or(
			cmp.Compare(ones(b.ofNodes()), ones(a.ofNodes())),
			cmp.Compare(b.Pods, a.Pods),
			cmp.Compare(a.Type, b.Type),
		)
	})
	counts := make([]string, 0, len(worst))
	for _, w := range worst {
		counts = append(counts, fmt.Sprintf("%s: %s on %s", w.Type, phrase.Count(w.Pods, "pod"), phrase.Count(w.Nodes, "node")))
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: string(worst[0].Type),
		Message: strings.Join(counts, ", ") + ". " + blocker.Explain(worst[0].Example),
	}
}

// ofNodes returns true if the obstacle blocks everything that is done to a node.
func (o Obstacle) ofNodes() bool {
	return o.Type == v1alpha1.BlockerForeignUncordon || o.Type == v1alpha1.BlockerCordonRefused
}

// Flipped returns true if a condition came, went, or changed its status or reason.
func Flipped(before, after []metav1.Condition) bool {
	if len(before) != len(after) {
		return true
	}
	for _, now := range after {
		was := meta.FindStatusCondition(before, now.Type)
		if was == nil || was.Status != now.Status || was.Reason != now.Reason {
			return true
		}
	}
	return false
}

// Became returns true if a condition has taken a reason that it had not before.
func Became(before, after []metav1.Condition, conditionType, reason string) bool {
	was, is := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
	return is != nil && is.Reason == reason && (was == nil || was.Reason != reason)
}
