package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maxMessage is how many bytes of a condition's message are kept.
const maxMessage = 4096

// conditions say whether the maintenance is drained and whether something holds it
// up. They speak of the present: before their stage and after the maintenance is
// complete there is nothing to say but how it ended.
func (c *conclusion) conditions(m *maintenance, t totals) []metav1.Condition {
	conditions := slices.Clone(m.object.Status.Conditions)
	blocked := t.blockedCondition()
	switch {
	case m.stage == v1alpha1.StageDrain:
		c.set(m, &conditions, t.drainedCondition(m, blocked))
		c.setPastDeadline(m, &conditions, t, blocked)
	case m.stage == v1alpha1.StageComplete:
		c.set(m, &conditions, m.ending())
		fallthrough
	default:
		meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionDrained)
		meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionPastDeadline)
	}
	c.setReturned(m, &conditions)
	if m.holds() || len(t.obstacles) > 0 {
		c.set(m, &conditions, blocked)
	} else {
		meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionBlocked)
	}
	return conditions
}

// ending is how a maintenance in Complete has ended, as far as its status says when it
// gets there. It is recorded before the status forgets, and does not change any more.
func (m *maintenance) ending() metav1.Condition {
	status := &m.object.Status
	if known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSucceeded); known != nil {
		return *known
	}
	ending := metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}
	drained := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrained)
	switch {
	case !hasStarted(m.object, v1alpha1.StageDrain):
		ending.Reason, ending.Message = v1alpha1.ReasonNotDraining, "Complete, was not in stage Drain."
	case drained != nil && drained.Status == metav1.ConditionTrue:
		ending.Reason, ending.Message = v1alpha1.ReasonDrained, "Complete, was drained."
	case drained == nil && !m.starts:
		// A manager of an older version has completed it and said nothing.
		ending.Status, ending.Reason, ending.Message = metav1.ConditionUnknown, v1alpha1.ReasonUnknown, "Complete."
	default:
		ending.Status, ending.Reason = metav1.ConditionFalse, v1alpha1.ReasonCancelled
		ending.Message = fmt.Sprintf("Cancelled, %s.", whatWasLeft(status))
	}
	return ending
}

// whatWasLeft is why a maintenance was not drained. A status that leaves nodes out
// begins with those that have pods.
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
	text := fmt.Sprintf("%s %s left", plural(pods, "pod"), were)
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

// invalidConditions are those of a maintenance that cannot be understood.
func (c *conclusion) invalidConditions(m *maintenance) []metav1.Condition {
	conditions := slices.Clone(m.object.Status.Conditions)
	if m.stage == v1alpha1.StageDrain {
		c.set(m, &conditions, metav1.Condition{
			Type: v1alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBlocked,
			Message: "Nothing is drained, because the spec is invalid.",
		})
	}
	c.set(m, &conditions, metav1.Condition{
		Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInvalidSpec,
		Message: m.invalid.Error(),
	})
	return conditions
}

// set puts a condition into a list; its transition time moves with its status only.
func (c *conclusion) set(m *maintenance, conditions *[]metav1.Condition, condition metav1.Condition) {
	condition.ObservedGeneration = m.object.Generation
	condition.Message = excerpt.Of(condition.Message, maxMessage)
	condition.LastTransitionTime = metav1.NewTime(c.Now).Rfc3339Copy()
	meta.SetStatusCondition(conditions, condition)
}

func (t totals) drainedCondition(m *maintenance, blocked metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDrained}
	if t.nodes == 0 {
		return m.drainedNothing()
	}
	condition.Message = fmt.Sprintf("%d of %s drained, %s left: %d pending evacuation, %d evacuating; %s retained.",
		t.drained, plural(t.nodes, "node"), plural(t.left(), "pod"), t.pending, t.evacuating, plural(t.retained, "pod"))
	if t.budgets > 0 {
		condition.Message += fmt.Sprintf(" %d of %s locked.", t.locked, plural(t.budgets, "budget"))
	}
	if t.drained == t.nodes {
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonDraining
	if blocked.Status == metav1.ConditionTrue {
		condition.Reason = v1alpha1.ReasonBlocked
	}
	if t.unread > 0 {
		condition.Message += fmt.Sprintf(" The pods of %s could not be read.", plural(t.unread, "node"))
	}
	return condition
}

// drainedNothing is Drained of a maintenance that selects no node. That is no success,
// as the selector may be mistaken. Nodes that it had and that are gone, though nobody
// has changed the selector, or that are all given back, stay what they were.
func (m *maintenance) drainedNothing() metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoNodes,
		Message: "spec.nodeSelector matches no node, so nothing is drained. See the labels of the nodes: kubectl get nodes --show-labels",
	}
	status := &m.object.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrained)
	gone := status.NodeCount > 0 || before != nil && before.Reason == v1alpha1.ReasonNodesGone
	if !gone || status.ObservedGeneration != m.object.Generation && m.givenBack() == 0 {
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

// blockedCondition says what holds a maintenance up, by the obstacle that matters
// most: one of nodes, else what holds most pods.
func (t totals) blockedCondition() metav1.Condition {
	if len(t.obstacles) == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotBlocked,
			Message: "Nothing holds the maintenance up.",
		}
	}
	worst := slices.SortedFunc(slices.Values(t.obstacles), func(a, b obstacleKind) int {
		return cmp.Or(
			cmp.Compare(ones(b.ofNodes()), ones(a.ofNodes())),
			cmp.Compare(b.pods, a.pods),
			cmp.Compare(a.kind, b.kind),
		)
	})
	words := make([]string, 0, len(worst))
	for _, w := range worst {
		words = append(words, fmt.Sprintf("%s: %s on %s", w.kind, plural(w.pods, "pod"), plural(w.nodes, "node")))
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: string(worst[0].kind),
		Message: strings.Join(words, ", ") + ". " + blocker.Explain(worst[0].example),
	}
}

// ofNodes returns true if the obstacle is in the way of all that is done to a node.
func (k obstacleKind) ofNodes() bool {
	return k.kind == v1alpha1.BlockerForeignUncordon || k.kind == v1alpha1.BlockerCordonRefused
}

// compareExamples orders blockers of one type by what a message says of them.
func compareExamples(a, b v1alpha1.Blocker) int {
	return cmp.Or(blocker.CompareObjects(a.Object, b.Object), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Suggestion, b.Suggestion))
}

// conditionsFlipped returns true if a condition came, went, or changed its
// status or reason.
func conditionsFlipped(before, after []metav1.Condition) bool {
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

// became returns true if a condition has taken a reason that it had not before.
func became(before, after []metav1.Condition, conditionType, reason string) bool {
	was, is := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
	return is != nil && is.Reason == reason && (was == nil || was.Reason != reason)
}
