// Package plan decides how far the drain plans of maintenances that share nodes have come, and so
// which pods have to leave each node: the least maintenance of a node rules it. A target never
// loses what a status has recorded. Progress is computed from the pods that are left, so new pods
// and new nodes set a plan back.
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
	Age  int // its place among all maintenances, 0 is the oldest
	// Began is the recorded start of its Drain stage; zero if there is none yet.
	Began  time.Time
	Plan   drainplan.Plan
	Drains []*Drain // by node name
}

// Node is a node that maintenances may drain.
type Node struct {
	Name   string
	Index  int  // its place among all nodes
	Read   bool // its pods are known
	Pods   []drainplan.Subject
	Drains []*Drain // oldest first
}

// Drain is a maintenance on one of its nodes.
type Drain struct {
	Maintenance *Maintenance
	Node        *Node
	Place       int // among the drains of the node
	// Counts is true, by pod, if the maintenance waits for it; Counted is their number.
	Counts  []bool
	Counted int
	// Past and FastForwardedBy come from its status of the node.
	Past            *Past
	FastForwardedBy string
	// DeadlineEntry is the last entry that a deadline has brought the plan to; -1 if none has.
	DeadlineEntry int
}

// Position is the position of a maintenance in its drain plan.
type Position struct {
	*Maintenance

	// index is the first entry with a counted pod on any of its nodes, otherwise the last entry.
	index int
	// own is the target of the plan up to entry.
	entry drainplan.Entry
	own   drainplan.Set
	// through is true if no counted pod is left.
	through bool
}

// NodePlan holds which pods have to leave a node.
type NodePlan struct {
	// Ruling is the maintenance whose drain plan the target follows; nil if none is in Drain.
	Ruling   *Position
	Target   *Target
	Covered  []bool
	Progress []Progress // by drain
}

// Progress is the progress of a maintenance in Drain on a node.
type Progress struct {
	// Under counts the awaited pods that the target covers.
	Under int
	// Beyond is true if the maintenance has reached a counted pod that the target does not cover.
	Beyond bool
	// Limiter keeps the target behind what the maintenance has reached; nil if none does.
	Limiter *Position
	// ForwardedBy is the name of the older maintenance that has brought the target ahead of it.
	ForwardedBy string
}

// Target selects the pods that leave a node.
type Target struct {
	Set drainplan.Set
	// Lines has a line for every selector, Brief only those that make a difference.
	Lines, Brief []v1alpha1.DrainPlanEntry
}

var none Target

// Plans holds the progress of all drain plans.
type Plans struct {
	// Nodes are in the order in which they were given.
	Nodes []NodePlan

	positions []Position
	// targets and compared cache what many nodes share.
	targets  map[string]*Target
	compared map[[2]string][]drainplan.Entry
	awaited  map[int][]*Drain
	// covered and progress are the backing arrays of all nodes.
	covered  []bool
	progress []Progress
}

// Decide decides how far every drain plan has come, and which pods leave each node. The
// maintenances are by age, nil if one is not in Drain.
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

// firstEntry returns the first entry with a counted or unknown pod, or the length of the plan.
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

// compare orders positions by what they reach: those with pods left come first, then by entry,
// then by age. Of those with no pods left, the deepest comes first.
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

// Of returns the maintenance in Drain of this age.
func (p *Plans) Of(age int) *Maintenance { return p.positions[age].Maintenance }

func (p *Plans) position(one *Drain) *Position { return &p.positions[one.Maintenance.Age] }

// decide joins what the least maintenance of a node has reached with what was recorded.
func (p *Plans) decide(n *Node) NodePlan {
	if len(n.Drains) == 0 {
		return NodePlan{Target: &none}
	}
	var d NodePlan
	for _, one := range n.Drains {
		if at := p.position(one); d.Ruling == nil || at.compare(d.Ruling) < 0 {
			d.Ruling = at
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

// target joins what the ruling maintenance has reached with what was recorded and with what
// deadlines have reached, which wait for no other maintenance or node. Lines that make no
// difference are kept, so that no line of a status ever disappears.
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
