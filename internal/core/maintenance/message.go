package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

// namedNodes is how many nodes are named of those that a node waits for.
const namedNodes = 3

// Explanation is what a maintenance in Drain does on a node or what it waits for, for
// programs and for people.
type Explanation struct {
	State   v1alpha1.NodeState
	Message string
	// AwaitedNodes are those whose pods have to leave first; at most three.
	AwaitedNodes []v1alpha1.NodeReference
}

// explain says what a maintenance in Drain does on a node or what it waits for
// (KEP-4212).
func (c *conclusion) explain(o *outcome, one *selection) Explanation {
	progress := &o.progress[one.place]
	switch {
	case !o.read:
		return Explanation{State: v1alpha1.NodeStateUnknown, Message: "Waiting for the pods of the node to be read."}
	case o.back(one):
		text := fmt.Sprintf("Back since %s: its pods are ready, and it holds no locks.", o.lock.returned.UTC().Format(time.RFC3339))
		return Explanation{State: v1alpha1.NodeStateReturned, Message: text}
	case o.emptied(one) && o.awaitsHandOver(one):
		return Explanation{State: v1alpha1.NodeStateWaitingForHandOver, Message: o.awaitsText(one)}
	case o.emptied(one):
		return Explanation{State: v1alpha1.NodeStateDrained, Message: "Drained."}
	case one.counted() == 0 && !o.lock.returned.IsZero():
		text := fmt.Sprintf("Waiting for NodeMaintenance %s to be complete: for it the node is back, and has no locks any more.", o.inPlace.name())
		return Explanation{State: v1alpha1.NodeStateWaitingForMaintenance, Message: text}
	case one.counted() == 0:
		return Explanation{State: v1alpha1.NodeStateWaitingForLocks, Message: o.lock.waiting}
	case one.maintenance.paused:
		return Explanation{State: v1alpha1.NodeStatePaused, Message: "Waiting for the Machine, whose drain is paused."}
	case progress.under == 0:
		return c.waitingFor(progress, one.maintenance)
	}
	state, text := o.doing(one.maintenance)
	switch {
	case progress.limiter != nil && (progress.beyond || progress.forwardedBy == ""):
		text = fmt.Sprintf("%s (limited by %s)", text, progress.limiter.name())
	case progress.forwardedBy != "":
		text = fmt.Sprintf("%s (fast-forwarded by older %s)", text, progress.forwardedBy)
	}
	return Explanation{State: state, Message: text}
}

// doing says whether some pod that a maintenance waits for, and that its node has come to,
// is about to leave, or what holds all of them.
func (o *outcome) doing(m *maintenance) (state v1alpha1.NodeState, text string) {
	state, text = v1alpha1.NodeStateWaitingForCompletion, "Waiting for pods to complete"
	blocked := o.blocked
	for i := range o.pods {
		p, kind := &o.pods[i], v1alpha1.BlockerType("")
		// What is blocked is in the order of the pods.
		if len(blocked) > 0 && blocked[0].pod == p {
			kind, blocked = blocked[0].blocker.Type, blocked[1:]
		}
		leaves := p.object.DeletionTimestamp != nil || blocker.AtWork(kind) || kind == "" && !o.awaitsTurn(i)
		switch {
		case !o.covered[i] || !m.counts(p) || kind == v1alpha1.BlockerWaitingForCompletion:
		case leaves:
			return v1alpha1.NodeStateDraining, "Evacuating"
		case kind != "":
			state, text = v1alpha1.NodeStateBlocked, "Waiting for blocked pods"
		}
	}
	return state, text
}

// answer returns the nodes whose pods a maintenance with pods left waits for, by name.
// They are its own as long as some evacuate; else those that its limiters wait for. A
// limiter is always less than the one that it limits, so this ends; and the least
// maintenance of all rules every node that it is on, so it never ends empty.
func (c *conclusion) answer(m *maintenance) []*selection {
	if known, asked := c.answers[m.age]; asked {
		return known
	}
	var answer []*selection
	var limiters []*position
	for _, one := range m.selections {
		t := &c.targeted.nodes[one.node.index]
		progress := &t.progress[one.place]
		if progress.under > 0 || !t.read {
			answer = append(answer, one)
		}
		if progress.beyond && !slices.Contains(limiters, progress.limiter) {
			limiters = append(limiters, progress.limiter)
		}
	}
	if len(answer) == 0 {
		for _, limiter := range limiters {
			answer = append(answer, c.answer(limiter.maintenance)...)
		}
		slices.SortStableFunc(answer, func(a, b *selection) int {
			return cmp.Or(cmp.Compare(a.node.index, b.node.index), cmp.Compare(a.maintenance.age, b.maintenance.age))
		})
		answer = slices.CompactFunc(answer, func(a, b *selection) bool { return a.node == b.node })
	}
	c.answers[m.age] = answer
	return answer
}

// waitingFor names the nodes that a maintenance without pods under the target of its
// node waits for.
func (c *conclusion) waitingFor(on *progress, m *maintenance) Explanation {
	asked := m
	if on.limiter != nil {
		asked = on.limiter.maintenance
	}
	key := [2]int{asked.age, m.age}
	if known, found := c.waiting[key]; found {
		return known
	}
	answer := c.answer(asked)
	named := answer[:min(len(answer), namedNodes)]
	e := Explanation{State: v1alpha1.NodeStateWaitingForNodes, Message: waitingText(answer, named, m)}
	for _, one := range named {
		e.AwaitedNodes = append(e.AwaitedNodes, v1alpha1.NodeReference{Name: one.node.name()})
	}
	c.waiting[key] = e
	return e
}

func waitingText(answer, named []*selection, seenBy *maintenance) string {
	several := slices.ContainsFunc(answer, func(one *selection) bool { return one.maintenance != answer[0].maintenance })
	of := func(one *selection) string {
		if one.maintenance == seenBy {
			return ""
		}
		return fmt.Sprintf(" (%s)", one.maintenance.name())
	}
	words := make([]string, 0, len(named))
	for _, one := range named {
		word := one.node.name()
		if several {
			word += of(one)
		}
		words = append(words, word)
	}
	text := "Waiting for node " + strings.Join(words, ", ")
	if len(answer) > 1 {
		text = "Waiting for nodes " + strings.Join(words, ", ")
	}
	if more := len(answer) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if !several && len(answer) > 0 {
		text += of(answer[0])
	}
	return text + "."
}
