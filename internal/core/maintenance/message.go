package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/maintenance/plan"
)

const namedNodes = 3

// Explanation holds what a maintenance in Drain does on a node or waits for.
type Explanation struct {
	State   v1alpha1.NodeState
	Message string
	// AwaitedNodes lists up to three nodes whose pods have to leave first.
	AwaitedNodes []v1alpha1.NodeReference
}

// explain returns what a maintenance in Drain does on a node or waits for (KEP-4212).
func (c *conclusion) explain(o *outcome, one *selection) Explanation {
	progress := &o.progress[one.place]
	switch {
	case !o.read:
		return Explanation{State: v1alpha1.NodeStateUnknown, Message: "Waiting for the pods of the node to be read."}
	case o.back(one):
		text := fmt.Sprintf("Back since %s: its pods are ready, and it holds no locks.", o.lock.Returned.UTC().Format(time.RFC3339))
		return Explanation{State: v1alpha1.NodeStateReturned, Message: text}
	case o.emptied(one) && o.awaitsHandOver(one):
		return Explanation{State: v1alpha1.NodeStateWaitingForHandOver, Message: o.handOverText(one)}
	case o.emptied(one):
		return Explanation{State: v1alpha1.NodeStateDrained, Message: "Drained."}
	case one.counted() == 0 && !o.lock.Returned.IsZero():
		text := fmt.Sprintf("Waiting for NodeMaintenance %s to be complete: for it the node is back, and has no locks any more.", o.inPlace.name())
		return Explanation{State: v1alpha1.NodeStateWaitingForMaintenance, Message: text}
	case one.counted() == 0:
		return Explanation{State: v1alpha1.NodeStateWaitingForLocks, Message: o.lock.Waiting}
	case one.maintenance.paused:
		return Explanation{State: v1alpha1.NodeStatePaused, Message: "Waiting for the Machine, whose drain is paused."}
	case progress.Under == 0:
		return c.waitingFor(progress, one.maintenance)
	}
	state, text := o.doing(one)
	switch {
	case progress.Limiter != nil && (progress.Beyond || progress.ForwardedBy == ""):
		text = fmt.Sprintf("%s (limited by %s)", text, progress.Limiter.Name)
	case progress.ForwardedBy != "":
		text = fmt.Sprintf("%s (fast-forwarded by older %s)", text, progress.ForwardedBy)
	}
	return Explanation{State: state, Message: text}
}

// doing reports whether a covered pod is about to leave, or what blocks all of them.
func (o *outcome) doing(one *selection) (state v1alpha1.NodeState, text string) {
	state, text = v1alpha1.NodeStateWaitingForCompletion, "Waiting for pods to complete"
	blocked := o.blocked
	for i := range o.pods {
		p, kind := &o.pods[i], v1alpha1.BlockerType("")
		// blocked is in the order of the pods.
		if len(blocked) > 0 && blocked[0].index == i {
			kind, blocked = blocked[0].blocker.Type, blocked[1:]
		}
		leaves := p.object.DeletionTimestamp != nil || blocker.AtWork(kind) || kind == "" && !o.awaitsWave(i)
		switch {
		case !o.covered[i] || !one.waitsFor(i) || kind == v1alpha1.BlockerWaitingForCompletion:
		case leaves:
			return v1alpha1.NodeStateDraining, "Evacuating"
		case kind != "":
			state, text = v1alpha1.NodeStateBlocked, "Waiting for blocked pods"
		}
	}
	return state, text
}

// waitingFor names the awaited nodes if the target covers no pod of the maintenance.
func (c *conclusion) waitingFor(on *plan.Progress, m *maintenance) Explanation {
	limiter := c.plans.Of(m.age)
	if on.Limiter != nil {
		limiter = on.Limiter.Maintenance
	}
	key := [2]int{limiter.Age, m.age}
	if known, found := c.waiting[key]; found {
		return known
	}
	awaited := c.plans.Awaited(limiter)
	named := awaited[:min(len(awaited), namedNodes)]
	e := Explanation{State: v1alpha1.NodeStateWaitingForNodes, Message: waitingText(awaited, named, m)}
	for _, one := range named {
		e.AwaitedNodes = append(e.AwaitedNodes, v1alpha1.NodeReference{Name: one.Node.Name})
	}
	c.waiting[key] = e
	return e
}

func waitingText(awaited, named []*plan.Drain, seenBy *maintenance) string {
	several := slices.ContainsFunc(awaited, func(one *plan.Drain) bool { return one.Maintenance != awaited[0].Maintenance })
	owner := func(one *plan.Drain) string {
		if one.Maintenance.Age == seenBy.age {
			return ""
		}
		return fmt.Sprintf(" (%s)", one.Maintenance.Name)
	}
	names := make([]string, 0, len(named))
	for _, one := range named {
		name := one.Node.Name
		if several {
			name += owner(one)
		}
		names = append(names, name)
	}
	text := "Waiting for node " + strings.Join(names, ", ")
	if len(awaited) > 1 {
		text = "Waiting for nodes " + strings.Join(names, ", ")
	}
	if more := len(awaited) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if !several && len(awaited) > 0 {
		text += owner(awaited[0])
	}
	return text + "."
}
