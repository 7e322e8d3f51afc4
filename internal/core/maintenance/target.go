package maintenance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// noOrder is later than any order of a rule.
const noOrder = int64(math.MaxInt64)

// targeted is which pods have to leave which node.
type targeted struct {
	*seen
	// positions are those of the maintenances, by age; they mean nothing before Drain.
	positions []position
	// nodes are in the order of seen.nodes, which they hide.
	nodes []targetedNode
	// compared is by two sets what of one is beyond the other.
	compared map[[2]string][]drainplan.Entry
}

// position is how far a maintenance has come in its drain plan. It is computed from
// what is running, never stored, so that it looks after new pods and new nodes by
// itself.
type position struct {
	*maintenance
	// index is the first entry of the plan that selects a counted pod on some of its
	// nodes, the last entry if none does.
	index int
	// entry is the entry there, own what the plan selects up to it.
	entry drainplan.Entry
	own   drainplan.Set
	// through is true if no counted pod is left.
	through bool
}

// targetedNode is a node with the pods that have to leave it.
type targetedNode struct {
	*node
	// ruling is the maintenance whose drain plan the target follows; nil if none is in
	// Drain.
	ruling *position
	target *target
	// deadlines are how far those of its maintenances have taken it.
	deadlines []reach
	// covered is by pod whether the target covers it.
	covered []bool
	// progress is by drain how far the node is.
	progress []progress
	// order is that of the pods whose turn it is, later the lowest one that pods wait
	// for; noOrder if there is none.
	order, later int64
}

// progress is how far a maintenance in Drain has come on a node.
type progress struct {
	// under is how many counted pods are left that the target covers.
	under int
	// beyond is true if it has come to a counted pod that the target does not cover.
	beyond bool
	// limiter is who keeps the target behind what it has come to; nil if nobody does.
	limiter *position
	// forwardedBy is the name of the older one that has brought the target ahead of it;
	// empty if none has.
	forwardedBy string
}

// target is which pods leave a node, as a set and as a status shows it.
type target struct {
	set drainplan.Set
	// shown is the target as drainTargets.
	shown       status.Targets
	suppression cordon.Suppression
}

// aim finds out how far every drain plan has come, and what that means for nodes.
func aim(s *seen) *targeted {
	t := &targeted{
		seen: s, positions: make([]position, len(s.maintenances)), nodes: make([]targetedNode, len(s.nodes)),
		compared: map[[2]string][]drainplan.Entry{},
	}
	pods, drains := 0, 0
	for _, n := range s.nodes {
		pods, drains = pods+len(n.pods), drains+len(n.drains)
	}
	for age, m := range s.maintenances {
		t.positions[age] = positionOf(m)
	}
	a := aiming{targeted: t, targets: map[string]*target{}, covered: make([]bool, pods), progress: make([]progress, drains)}
	for index, n := range s.nodes {
		t.nodes[index] = a.aimAt(n)
	}
	return t
}

func positionOf(m *maintenance) position {
	p := position{maintenance: m}
	if m.stage != v1alpha1.StageDrain || m.invalid != nil {
		return p
	}
	first := m.firstEntry()
	p.through = first == m.plan.Len()
	p.index = min(first, m.plan.Len()-1)
	p.entry, p.own = m.plan.Entry(p.index), m.plan.Cum(p.index)
	return p
}

// firstEntry is the first position of the plan with a counted pod, or its length. A
// node whose pods are unknown may have any pod.
func (m *maintenance) firstEntry() int {
	first := m.plan.Len()
	for _, one := range m.selections {
		if !one.node.read {
			return 0
		}
		if one.counted() == 0 {
			continue
		}
		for i := range one.node.pods {
			if p := &one.node.pods[i]; m.counts(p) {
				first = m.plan.First(p.Subject, first)
			}
		}
		if first == 0 {
			break
		}
	}
	return first
}

// compare orders positions by how much they ask for: those with pods left come
// first, then by entry, then by age. Where no pods are left nobody has to be waited
// for, and the deepest comes first.
func (p *position) compare(other *position) int {
	entries := p.entry.Compare(other.entry)
	if p.through {
		entries = -entries
	}
	return cmp.Or(
		cmp.Compare(ones(p.through), ones(other.through)),
		entries,
		cmp.Compare(p.age, other.age),
	)
}

// aiming makes targets, equal ones once.
type aiming struct {
	*targeted
	targets map[string]*target
	// covered and progress are where those of all nodes are kept.
	covered  []bool
	progress []progress
}

// aimAt sets the target of a node: what the least of its maintenances has come to,
// joined with what any of them has recorded before.
func (a *aiming) aimAt(n *node) targetedNode {
	t := targetedNode{node: n, target: &target{}, order: noOrder, later: noOrder}
	if len(n.drains) == 0 {
		return t
	}
	for _, one := range n.drains {
		if p := &a.positions[one.maintenance.age]; t.ruling == nil || p.compare(t.ruling) < 0 {
			t.ruling = p
		}
	}
	t.deadlines = a.reached(n)
	t.target = a.targetOf(t.ruling, n, t.deadlines)
	t.covered, a.covered = a.covered[:len(n.pods):len(n.pods)], a.covered[len(n.pods):]
	t.progress, a.progress = a.progress[:len(n.drains):len(n.drains)], a.progress[len(n.drains):]
	for i := range n.pods {
		p := &n.pods[i]
		t.covered[i] = t.target.set.CoversSubject(p.Subject)
		if p.counted {
			a.remain(&t, p, t.covered[i])
		}
	}
	t.takeTurns()
	a.limits(&t)
	return t
}

// remain adds a pod to what is left of each maintenance that counts it.
func (a *aiming) remain(t *targetedNode, p *pod, covered bool) {
	for place, one := range t.drains {
		left := &t.progress[place]
		switch m := one.maintenance; {
		case covered && m.counts(p):
			left.under++
		case !covered && !left.beyond && m.counts(p):
			index := a.positions[m.age].index
			left.beyond = m.plan.First(p.Subject, index+1) <= index
		}
	}
}

// targetOf joins what the ruling maintenance has come to with what was recorded. The
// lines of a status are kept where the set alone would not show them any more, so
// that no line of a status ever disappears. Pods that only a maintenance that has
// ended asked for may come back. A deadline waits for no other maintenance and no other
// node, so what it has reached is joined, too.
func (a *aiming) targetOf(ruling *position, n *node, deadlines []reach) *target {
	var past []*pastTarget
	for _, one := range n.drains {
		if !slices.Contains(past, one.previous) {
			past = append(past, one.previous)
		}
	}
	key := strconv.AppendInt(nil, int64(ruling.age), 10)
	key = append(key, ' ', byte('0'+n.depth))
	for _, one := range past {
		key = strconv.AppendInt(append(key, ' '), int64(one.id), 10)
	}
	for _, one := range deadlines {
		key = strconv.AppendInt(append(key, '/'), int64(one.maintenance.age), 10)
		key = strconv.AppendInt(append(key, ':'), int64(one.entry), 10)
	}
	if known, found := a.targets[string(key)]; found {
		return known
	}
	set, lines := ruling.own, ruling.plan.Entries()
	for _, one := range past {
		set = drainplan.Join(set, one.set)
		lines = slices.Concat(lines, one.entries)
	}
	for _, one := range deadlines {
		set = drainplan.Join(set, one.maintenance.plan.Cum(one.entry))
		lines = slices.Concat(lines, one.maintenance.plan.Entries())
	}
	made := &target{
		set:         set,
		shown:       status.Targets{Key: set.Key(), Full: status.Render(set.Render(lines)), Brief: status.Render(set.Render(nil))},
		suppression: cordon.SuppressionOf(set, n.depth),
	}
	a.targets[string(key)] = made
	return made
}

// leaves returns true if the pod at this place is to leave the node, though its turn
// may come later. What was asked for it before is not taken back, unless nobody wants it
// any more.
func (t *targetedNode) leaves(i int) bool {
	p := &t.pods[i]
	return t.covered[i] && p.wanted && p.evacuable()
}

// due returns true if it is the pod's turn to leave the node.
func (t *targetedNode) due(i int) bool {
	p := &t.pods[i]
	return t.leaves(i) && !p.unclear() && int64(p.treatment.Order) <= t.order
}

// takeTurns finds out whose turn it is: those of the lowest order that is present,
// with pods that are terminating, those that are left to complete and those that
// nobody knows how to treat.
func (t *targetedNode) takeTurns() {
	for i := range t.pods {
		if p := &t.pods[i]; t.covered[i] && p.counted {
			t.order = min(t.order, int64(p.treatment.Order))
		}
	}
	for i := range t.pods {
		if t.awaitsTurn(i) {
			t.later = min(t.later, int64(t.pods[i].treatment.Order))
		}
	}
}

// awaitsTurn returns true if the pod at this place is to leave when those of a lower order
// have, and nobody has asked it yet.
func (t *targetedNode) awaitsTurn(i int) bool {
	p := &t.pods[i]
	return t.leaves(i) && !p.unclear() && int64(p.treatment.Order) > t.order && !p.underWay() && p.object.DeletionTimestamp == nil
}

// turns says which pods wait for their order.
func (t *targetedNode) turns() string {
	if t.later == noOrder {
		return ""
	}
	return fmt.Sprintf(". Pods of order %d and later wait until those of order %d are gone.", t.later, t.order)
}

func ones(counts bool) int {
	if counts {
		return 1
	}
	return 0
}
