// Package plan decides how far the drain plans of maintenances that share nodes have come, and
// so which pods have to leave each node: the least maintenance of a node rules it. A target
// never loses what a status has recorded of it. How far a plan has come is computed from the
// pods that are left, so that it goes back for new pods and new nodes.
package plan

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// Maintenance is a maintenance in Drain.
type Maintenance struct {
	Name string
	// Age is its place among all maintenances, 0 is the oldest.
	Age int
	// Began is when its Drain stage was recorded; zero if it was not yet.
	Began time.Time
	Plan  drainplan.Plan
	// Drains are its nodes, by name.
	Drains []*Drain
}

// Node is a node that maintenances may drain.
type Node struct {
	Name string
	// Index is its place among all nodes.
	Index int
	// Read is true if its pods are known.
	Read bool
	Pods []drainplan.Subject
	// Drains are those of its maintenances in Drain, oldest first.
	Drains []*Drain
}

// Drain is a maintenance on one of its nodes.
type Drain struct {
	Maintenance *Maintenance
	Node        *Node
	// Place is its place among the drains of the node.
	Place int
	// Counts is by pod whether the maintenance waits for it, Counted for how many it does.
	Counts  []bool
	Counted int
	// Past is the target that its status has for the node, FastForwardedBy the older one that
	// its status names.
	Past            *Past
	FastForwardedBy string
	// DeadlineEntry is the last entry that a deadline has taken the plan to; -1 if none has.
	DeadlineEntry int
}

// Position is how far a maintenance has come in its drain plan.
type Position struct {
	*Maintenance

	// index is the first entry of the plan that selects a counted pod on some of its
	// nodes, the last entry if none does.
	index int
	// entry is the entry there, own what the plan selects up to it.
	entry drainplan.Entry
	own   drainplan.Set
	// through is true if no counted pod is left.
	through bool
}

// NodePlan is which pods have to leave a node.
type NodePlan struct {
	// Ruling is the maintenance whose drain plan the target follows; nil if none is in Drain.
	Ruling *Position
	Target *Target
	// Covered is by pod whether the target covers it.
	Covered []bool
	// Progress is by drain how far the node is.
	Progress []Progress
}

// Progress is how far a maintenance in Drain has come on a node.
type Progress struct {
	// Under is how many counted pods are left that the target covers.
	Under int
	// Beyond is true if it has come to a counted pod that the target does not cover.
	Beyond bool
	// Limiter is who keeps the target behind what it has come to; nil if nobody does.
	Limiter *Position
	// ForwardedBy is the name of the older one that has brought the target ahead of it;
	// empty if none has.
	ForwardedBy string
}

// Target is which pods leave a node.
type Target struct {
	Set drainplan.Set
	// Lines has a line for every selector, Brief only those that the set needs.
	Lines, Brief []v1alpha1.DrainPlanEntry
}

// none is the target of a node that no maintenance drains.
var none Target

// Plans is how far all drain plans have come.
type Plans struct {
	// Nodes are in the order in which they were given.
	Nodes []NodePlan

	// positions are by age.
	positions []Position
	// targets finds equal ones, compared what of a set is beyond another one.
	targets  map[string]*Target
	compared map[[2]string][]drainplan.Entry
	// awaited are by age what Awaited has answered.
	awaited map[int][]*Drain
	// covered and progress are where those of all nodes are kept.
	covered  []bool
	progress []Progress
}

// Decide finds out how far every drain plan has come, and what that means for nodes. The
// maintenances are by age, nil where one is not in Drain.
func Decide(maintenances []*Maintenance, nodes []*Node) *Plans {
	pods, drains := 0, 0
	for _, n := range nodes {
		pods, drains = pods+len(n.Pods), drains+len(n.Drains)
	}
	p := &Plans{
		Nodes: make([]NodePlan, len(nodes)), positions: make([]Position, len(maintenances)),
		targets: map[string]*Target{}, compared: map[[2]string][]drainplan.Entry{}, awaited: map[int][]*Drain{},
		covered: make([]bool, pods), progress: make([]Progress, drains),
	}
	for age, m := range maintenances {
		if m != nil {
			p.positions[age] = locate(m)
		}
	}
	for i, n := range nodes {
		p.Nodes[i] = p.decide(n)
	}
	return p
}

func locate(m *Maintenance) Position {
	first := m.firstEntry()
	p := Position{Maintenance: m, through: first == m.Plan.Len(), index: min(first, m.Plan.Len()-1)}
	p.entry, p.own = m.Plan.Entry(p.index), m.Plan.Cum(p.index)
	return p
}

// firstEntry is the first position of the plan with a counted pod, or its length. A
// node whose pods are unknown may have any pod.
func (m *Maintenance) firstEntry() int {
	first := m.Plan.Len()
	for _, one := range m.Drains {
		if !one.Node.Read {
			return 0
		}
		if one.Counted == 0 {
			continue
		}
		for i, counts := range one.Counts {
			if counts {
				first = m.Plan.First(one.Node.Pods[i], first)
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
func (p *Position) compare(other *Position) int {
	entries := p.entry.Compare(other.entry)
	if p.through {
		entries = -entries
	}
	return cmp.Or(
		cmp.Compare(ones(p.through), ones(other.through)),
		entries,
		cmp.Compare(p.Age, other.Age),
	)
}

// Of is the maintenance in Drain of this age.
func (p *Plans) Of(age int) *Maintenance { return p.positions[age].Maintenance }

func (p *Plans) position(one *Drain) *Position { return &p.positions[one.Maintenance.Age] }

// decide sets the target of a node: what the least of its maintenances has come to,
// joined with what any of them has recorded before.
func (p *Plans) decide(n *Node) NodePlan {
	if len(n.Drains) == 0 {
		return NodePlan{Target: &none}
	}
	var d NodePlan
	for _, one := range n.Drains {
		if its := p.position(one); d.Ruling == nil || its.compare(d.Ruling) < 0 {
			d.Ruling = its
		}
	}
	d.Target = p.target(d.Ruling, n)
	d.Covered, p.covered = p.covered[:len(n.Pods):len(n.Pods)], p.covered[len(n.Pods):]
	d.Progress, p.progress = p.progress[:len(n.Drains):len(n.Drains)], p.progress[len(n.Drains):]
	for i, pod := range n.Pods {
		d.Covered[i] = d.Target.Set.CoversSubject(pod)
	}
	for place, one := range n.Drains {
		d.Progress[place] = p.progressOf(one, d.Covered)
	}
	p.limits(n, &d)
	return d
}

// progressOf is what is left of a maintenance on a node.
func (p *Plans) progressOf(one *Drain, covered []bool) (left Progress) {
	m, index := one.Maintenance, p.position(one).index
	for i, counts := range one.Counts {
		switch {
		case counts && covered[i]:
			left.Under++
		case counts && !left.Beyond:
			left.Beyond = m.Plan.First(one.Node.Pods[i], index+1) <= index
		}
	}
	return left
}

// target joins what the ruling maintenance has come to with what was recorded. The
// lines of a status are kept where the set alone would not show them any more, so
// that no line of a status ever disappears. Pods that only a maintenance that has
// ended asked for may come back. A deadline waits for no other maintenance and no other
// node, so what it has reached is joined, too.
func (p *Plans) target(ruling *Position, n *Node) *Target {
	var past []*Past
	for _, one := range n.Drains {
		if !slices.Contains(past, one.Past) {
			past = append(past, one.Past)
		}
	}
	key := strconv.AppendInt(nil, int64(ruling.Age), 10)
	for _, one := range past {
		key = strconv.AppendInt(append(key, ' '), int64(one.id), 10)
	}
	for _, one := range n.Drains {
		if one.DeadlineEntry >= 0 {
			key = strconv.AppendInt(append(key, '/'), int64(one.Maintenance.Age), 10)
			key = strconv.AppendInt(append(key, ':'), int64(one.DeadlineEntry), 10)
		}
	}
	if known, found := p.targets[string(key)]; found {
		return known
	}
	set, lines := ruling.own, ruling.Plan.Entries()
	for _, one := range past {
		set = drainplan.Join(set, one.Set)
		lines = slices.Concat(lines, one.entries)
	}
	for _, one := range n.Drains {
		if one.DeadlineEntry >= 0 {
			set = drainplan.Join(set, one.Maintenance.Plan.Cum(one.DeadlineEntry))
			lines = slices.Concat(lines, one.Maintenance.Plan.Entries())
		}
	}
	made := &Target{Set: set, Lines: set.Render(lines), Brief: set.Render(nil)}
	p.targets[string(key)] = made
	return made
}

func ones(counts bool) int {
	if counts {
		return 1
	}
	return 0
}
