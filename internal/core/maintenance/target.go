package maintenance

import (
	"fmt"
	"math"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/maintenance/plan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// noOrder is later than any order of a rule.
const noOrder = int64(math.MaxInt64)

// targeted adds to an observation which pods have to leave which node.
type targeted struct {
	*observation
	plans *plan.Plans
	// nodes shadows observation.nodes, in the same order.
	nodes []targetedNode
}

type targetedNode struct {
	*node
	// ruling is the maintenance whose drain plan the target follows; nil if none is in Drain.
	ruling   *plan.Position
	target   *nodeTarget
	covered  []bool
	progress []plan.Progress
	// order ranks the pods that leave now, later the next ones; noOrder if there are none.
	order, later int64
}

// nodeTarget holds which pods leave a node, as a set, as a status shows it, and as the node does.
type nodeTarget struct {
	set         drainplan.Set
	shown       status.Targets
	suppression cordon.Suppression
}

// target decides how far every drain plan has come, and so which pods leave each node.
func target(s *observation) *targeted {
	t := &targeted{observation: s, plans: plan.Decide(s.drains()), nodes: make([]targetedNode, len(s.nodes))}
	type key struct {
		target *plan.Target
		depth  int
	}
	targets := map[key]*nodeTarget{}
	for i, n := range s.nodes {
		p := &t.plans.Nodes[i]
		k := key{p.Target, n.depth}
		if targets[k] == nil {
			set := p.Target.Set
			targets[k] = &nodeTarget{
				set:         set,
				shown:       status.Targets{Key: set.Key(), Full: status.Render(p.Target.Lines), Brief: status.Render(p.Target.Brief)},
				suppression: cordon.SuppressionOf(set, n.depth),
			}
		}
		t.nodes[i] = targetedNode{
			node: n, ruling: p.Ruling, target: targets[k], covered: p.Covered, progress: p.Progress, order: noOrder, later: noOrder,
		}
		findWave(&t.nodes[i])
	}
	return t
}

func (s *observation) drains() ([]*plan.Maintenance, []*plan.Node) {
	maintenances := make([]*plan.Maintenance, len(s.maintenances))
	for age, m := range s.maintenances {
		if m.stage == v1alpha1.StageDrain && m.invalid == nil {
			maintenances[age] = &plan.Maintenance{Name: m.name(), Age: age, Began: m.began, Plan: m.plan}
		}
	}
	nodes := make([]*plan.Node, len(s.nodes))
	for index, n := range s.nodes {
		nodes[index] = &plan.Node{Name: n.name(), Index: index, Read: n.read, Pods: make([]drainplan.Subject, len(n.pods))}
		for i := range n.pods {
			nodes[index].Pods[i] = n.pods[i].Subject
		}
		for place, one := range n.drains {
			d := &plan.Drain{
				Maintenance: maintenances[one.maintenance.age], Node: nodes[index], Place: place, Counts: one.counts, Counted: int(one.counted()),
				Past: one.previous, DeadlineEntry: s.deadlineEntry(one),
			}
			if one.observed != nil {
				d.FastForwardedBy = one.observed.FastForwardedBy
			}
			nodes[index].Drains = append(nodes[index].Drains, d)
			d.Maintenance.Drains = append(d.Maintenance.Drains, d)
		}
	}
	return maintenances, nodes
}

// leaves returns true if the pod at index i leaves the node, perhaps in a later wave. Its
// requests are not withdrawn unless no maintenance wants it to leave any more.
func (t *targetedNode) leaves(i int) bool {
	p := &t.pods[i]
	return t.covered[i] && p.wanted && p.evacuable()
}

// due returns true if the pod at index i leaves now.
func (t *targetedNode) due(i int) bool {
	p := &t.pods[i]
	return t.leaves(i) && !p.unclear() && int64(p.treatment.Order) <= t.order
}

// findWave finds the lowest order present, with terminating, completing and unclear pods.
func findWave(t *targetedNode) {
	for i := range t.pods {
		if p := &t.pods[i]; t.covered[i] && p.counted {
			t.order = min(t.order, int64(p.treatment.Order))
		}
	}
	for i := range t.pods {
		if t.awaitsWave(i) {
			t.later = min(t.later, int64(t.pods[i].treatment.Order))
		}
	}
}

func (t *targetedNode) awaitsWave(i int) bool {
	p := &t.pods[i]
	return t.leaves(i) && !p.unclear() && int64(p.treatment.Order) > t.order && !p.isLeaving() && p.object.DeletionTimestamp == nil
}

// waveText names the waves that wait; empty if there are none.
func (t *targetedNode) waveText() string {
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
