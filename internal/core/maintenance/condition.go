package maintenance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

// maxMessage is how many bytes of a condition's message are kept.
const maxMessage = 4096

// conditions say whether the maintenance is drained and whether something holds
// it up. They speak of the present: before their stage and after the maintenance
// is complete there is nothing to say.
func (p *pass) conditions(i *intent, t tally) []metav1.Condition {
	conditions := slices.Clone(i.object.Status.Conditions)
	if !i.holds() {
		meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionDrained)
		meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionBlocked)
		return conditions
	}
	blocked := i.blocked(t)
	if i.stage == v1alpha1.StageDrain {
		p.set(i, &conditions, drainedCondition(t, blocked))
	} else {
		meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionDrained)
	}
	p.set(i, &conditions, blocked)
	return conditions
}

// invalidConditions are those of a maintenance that cannot be understood.
func (p *pass) invalidConditions(i *intent) []metav1.Condition {
	conditions := slices.Clone(i.object.Status.Conditions)
	if i.stage == v1alpha1.StageDrain {
		p.set(i, &conditions, metav1.Condition{
			Type: v1alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBlocked,
			Message: "Nothing is drained, because the spec is invalid.",
		})
	}
	p.set(i, &conditions, metav1.Condition{
		Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInvalidSpec,
		Message: i.invalid.Error(),
	})
	return conditions
}

// set puts a condition into a list; its transition time moves with its status only.
func (p *pass) set(i *intent, conditions *[]metav1.Condition, condition metav1.Condition) {
	condition.ObservedGeneration = i.object.Generation
	if len(condition.Message) > maxMessage {
		condition.Message = strings.ToValidUTF8(condition.Message[:maxMessage], "")
	}
	condition.LastTransitionTime = metav1.NewTime(p.snapshot.Now).Rfc3339Copy()
	meta.SetStatusCondition(conditions, condition)
}

func drainedCondition(t tally, blocked metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDrained}
	if t.nodes == 0 {
		condition.Reason = v1alpha1.ReasonNoNodes
		condition.Message = "spec.nodeSelector matches no node, so there is nothing to drain."
		return condition
	}
	condition.Message = fmt.Sprintf("%d of %s drained, %s left: %d pending evacuation, %d evacuating; %s retained.",
		t.drained, count(t.nodes, "node"), count(t.left(), "pod"), t.pending, t.evacuating, count(t.retained, "pod"))
	if t.budgets > 0 {
		condition.Message += fmt.Sprintf(" %d of %s locked.", t.locked, count(t.budgets, "budget"))
	}
	if t.drained == t.nodes {
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonDraining
	if blocked.Status == metav1.ConditionTrue {
		condition.Reason = v1alpha1.ReasonBlocked
	}
	if t.unknown > 0 {
		condition.Message += fmt.Sprintf(" The pods of %s could not be read.", count(t.unknown, "node"))
	}
	return condition
}

// blocked says what holds the intent up, by the blocker that matters most: a
// fight over the cordon, else what holds most pods.
func (i *intent) blocked(t tally) metav1.Condition {
	if t.fought == 0 && t.held == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotBlocked,
			Message: "Nothing holds the maintenance up.",
		}
	}
	worst := i.worstBlockers()
	return metav1.Condition{
		Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: string(worst[0].kind),
		Message: describe(worst),
	}
}

// held is one type of blocker over all nodes.
type held struct {
	kind        v1alpha1.BlockerType
	pods, nodes int32
	// example is the least blocker of this type, by all of its words.
	example v1alpha1.Blocker
}

// worstBlockers are the types of blockers that hinder, the worst first.
func (i *intent) worstBlockers() []held {
	kinds := map[v1alpha1.BlockerType]held{}
	lastNode := map[v1alpha1.BlockerType]*site{}
	for _, one := range i.shares {
		for _, b := range one.hindering {
			sum, known := kinds[b.Type]
			if !known || compareExamples(b, sum.example) < 0 {
				sum.example = b
			}
			sum.kind = b.Type
			sum.pods += b.PodCount
			sum.nodes += int32(ones(lastNode[b.Type] != one.site))
			lastNode[b.Type] = one.site
			kinds[b.Type] = sum
		}
	}
	return slices.SortedFunc(maps.Values(kinds), func(a, b held) int {
		return cmp.Or(
			cmp.Compare(ones(b.kind == v1alpha1.BlockerForeignUncordon), ones(a.kind == v1alpha1.BlockerForeignUncordon)),
			cmp.Compare(b.pods, a.pods),
			cmp.Compare(a.kind, b.kind),
		)
	})
}

// compareExamples orders blockers of one type by what a message says of them.
func compareExamples(a, b v1alpha1.Blocker) int {
	return cmp.Or(blocker.CompareObjects(a.Object, b.Object), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Suggestion, b.Suggestion))
}

// describe tells how much each type holds and explains the worst by an example.
func describe(worst []held) string {
	words := make([]string, 0, len(worst))
	for _, w := range worst {
		words = append(words, fmt.Sprintf("%s: %s on %s", w.kind, count(w.pods, "pod"), count(w.nodes, "node")))
	}
	return strings.Join(words, ", ") + ". " + blocker.Explain(worst[0].example)
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
