package maintenance

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

// namedNodes is how many nodes a message names.
const namedNodes = 3

// drained is what is said of a node from which every pod has left that has to.
const drained = "Drained."

// backSince begins what is said of a node that is back before its maintenance is complete.
const backSince = "Back since "

// SaysDrained returns true if the drainMessage of a node says that it is drained, or was
// and is back.
func SaysDrained(message string) bool {
	return message == drained || strings.HasPrefix(message, backSince)
}

// explain says what a maintenance in Drain does on a node or what it waits for
// (KEP-4212).
func (c *conclusion) explain(o *outcome, one *selection) string {
	progress := &o.progress[one.place]
	switch {
	case !o.read:
		return "Waiting for the pods of the node to be read."
	case o.back(one):
		return fmt.Sprintf(backSince+"%s: its pods are ready, and it holds no locks.", o.lock.returned.UTC().Format(time.RFC3339))
	case o.emptied(one) && o.awaitsHandOver(one):
		return o.handings[one.place].awaitsText()
	case o.emptied(one):
		return drained
	case one.counted() == 0 && !o.lock.returned.IsZero():
		return fmt.Sprintf("Waiting for NodeMaintenance %s to be complete: for it the node is back, and has no locks any more.", o.inPlace.name())
	case one.counted() == 0:
		return o.lock.waiting
	case one.maintenance.paused:
		return "Waiting for the Machine, whose drain is paused."
	case progress.under == 0:
		return c.waitingFor(progress, one.maintenance)
	case progress.limiter != nil && (progress.beyond || progress.forwardedBy == ""):
		return fmt.Sprintf("%s (limited by %s)", o.doing(one.maintenance), progress.limiter.name())
	case progress.forwardedBy != "":
		return fmt.Sprintf("%s (fast-forwarded by older %s)", o.doing(one.maintenance), progress.forwardedBy)
	default:
		return o.doing(one.maintenance)
	}
}

// doing says whether some pod that a maintenance waits for, and that its node has come to,
// is about to leave, or what holds all of them.
func (o *outcome) doing(m *maintenance) string {
	text, blocked := "Waiting for pods to complete", o.blocked
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
			return "Evacuating"
		case kind != "":
			text = "Waiting for blocked pods"
		}
	}
	return text
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
func (c *conclusion) waitingFor(on *progress, m *maintenance) string {
	asked := m
	if on.limiter != nil {
		asked = on.limiter.maintenance
	}
	key := [2]int{asked.age, m.age}
	if known, found := c.waiting[key]; found {
		return known
	}
	text := waitingText(c.answer(asked), m)
	c.waiting[key] = text
	return text
}

func waitingText(answer []*selection, seenBy *maintenance) string {
	named := answer[:min(len(answer), namedNodes)]
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
	text := awaitsNode + strings.Join(words, ", ")
	if len(answer) > 1 {
		text = awaitsNodes + strings.Join(words, ", ")
	}
	if more := len(answer) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if !several && len(answer) > 0 {
		text += of(answer[0])
	}
	return text + "."
}

// awaitsNode and awaitsNodes begin what is said of a node whose turn is to come.
const awaitsNode, awaitsNodes = "Waiting for node ", "Waiting for nodes "

// moreNodes are nodes that are not named, and a maintenance in brackets.
var moreNodes = regexp.MustCompile(` and [0-9]+ more$| \([^()]*\)$`)

// Awaited are the nodes that the drainMessage of a node names, whose pods have to leave
// before its own; at most three.
func Awaited(message string) []string {
	names, one := strings.CutPrefix(message, awaitsNode)
	if !one {
		var several bool
		if names, several = strings.CutPrefix(message, awaitsNodes); !several {
			return nil
		}
	}
	names = moreNodes.ReplaceAllString(strings.TrimSuffix(names, "."), "")
	var nodes []string
	for _, name := range strings.SplitN(names, ", ", namedNodes+1) {
		name = moreNodes.ReplaceAllString(moreNodes.ReplaceAllString(name, ""), "")
		if len(nodes) < namedNodes && len(validation.IsDNS1123Subdomain(name)) == 0 {
			nodes = append(nodes, name)
		}
	}
	return nodes
}
