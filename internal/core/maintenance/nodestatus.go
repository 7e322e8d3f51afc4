package maintenance

import (
	"cmp"
	"encoding/json"
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

const (
	// plainNodes is up to how many nodes a list is by name only.
	plainNodes = 1000
	// listBytes is what the list may take of the 1 MiB of an object.
	listBytes = 900 << 10
)

// nodeStatus is what there is to say of a node to a maintenance that selects it: a
// complete entry of nodeStatuses, and what it was made from.
type nodeStatus struct {
	v1alpha1.NodeMaintenanceNodeStatus
	selection        *selection
	target           *target
	progress         progress
	obstacles        obstacles
	emptied, drained bool
	// blockerBytes and retainedBytes are how many bytes the first of them take in the
	// object, by how many; nil before somebody has asked.
	blockerBytes, retainedBytes []int
}

// noTarget is the target that a maintenance has for a node before it is in Drain.
var noTarget target

// nodeStatuses are those of all nodes of a maintenance, by name.
func (c *conclusion) nodeStatuses(m *maintenance) ([]nodeStatus, totals) {
	statuses := make([]nodeStatus, len(m.selections))
	var sum totals
	for i, one := range m.selections {
		o := &c.nodes[one.node.index]
		s := &statuses[i]
		s.selection, s.target, s.obstacles = one, &noTarget, o.obstaclesFor(one)
		s.NodeRef.Name, s.Blockers = one.node.name(), s.obstacles.shown
		s.PodsPendingEvacuation, s.PodsEvacuating, s.PodsRetained = one.pending, one.evacuating, one.retained
		s.emptied, s.drained = o.emptied(one), o.drained(one)
		if m.stage == v1alpha1.StageDrain {
			s.target, s.progress = o.target, o.progress[one.place]
			if len(m.selections) <= plainNodes && one.retained > 0 {
				s.Retained = o.retainedBy(m)
			}
			e := c.explain(o, one)
			s.State, s.DrainMessage, s.AwaitedNodes = e.State, e.Message, e.AwaitedNodes
			s.FastForwardedBy = s.progress.forwardedBy
			if s.progress.under > 0 {
				s.DrainMessage += o.turns()
			}
		}
		if m.stage == v1alpha1.StageIdle {
			s.plan(c.Planned[m.name()], c.plans)
		}
		sum.add(o, s)
	}
	c.addLeft(&sum, m)
	return statuses, sum
}

// plan has the status of a node say what would be done there. Nothing of it is in the way of
// anything yet.
func (s *nodeStatus) plan(planned map[string]v1alpha1.NodeMaintenanceNodeStatus, targets map[string]*target) {
	would, known := planned[s.NodeRef.Name]
	if !known {
		return
	}
	s.NodeMaintenanceNodeStatus = would
	key := string(keyOf(would.DrainTargets))
	if targets[key] == nil {
		lines := renderingOf(would.DrainTargets)
		targets[key] = &target{set: drainplan.NewSet(drainplan.Parse(would.DrainTargets)...), full: lines, brief: lines}
	}
	s.target = targets[key]
}

// addLeft adds what cannot be given back of nodes that have left the maintenance. They
// have no entry in its status.
func (c *conclusion) addLeft(sum *totals, m *maintenance) {
	for _, n := range m.listed {
		o := &c.nodes[n.index]
		if slices.ContainsFunc(n.selections, func(one *selection) bool { return one.maintenance == m }) {
			continue
		}
		sum.awaited += ones(m.stage == v1alpha1.StageComplete && o.cordon.Awaited)
		for _, kind := range kindsOf(o.refusals) {
			sum.obstacles = addKind(sum.obstacles, kind)
		}
	}
}

// detail is how much a list says of each node.
type detail struct {
	retained bool
	blockers int
	// brief leaves out the lines of a target that its other lines cover.
	brief bool
}

// list is nodeStatuses as a status has it, by name, and how many it leaves out.
//
// Past 1,000 nodes those that are not drained come first. A list that would be too long
// first loses the pods that stay, then all blockers of a node but one, then nodes: those
// that nothing blocks before others, drained ones before others. What
// is left out must not lose its target. Therefore only nodes whose target is the
// most frequent one are left out, and the last listed node has that same target
// and stands in for them: see omittedTargets. If all others are too many, the targets
// are shown without the lines that make no difference, and no blockers at last.
func list(m *maintenance, statuses []nodeStatus) (listed []v1alpha1.NodeMaintenanceNodeStatus, omitted int) {
	all := m.listedOf(statuses)
	d := detail{retained: true, blockers: blocker.MaxBlockers}
	for _, d.blockers = range []int{d.blockers, d.blockers, 3, 1} {
		if sizeOf(all, d) <= listBytes {
			break
		}
		d.retained = false
	}
	kept := all
	if len(all) > plainNodes || sizeOf(all, d) > listBytes {
		kept = shorten(all, d)
	}
	for range 2 {
		if sizeOf(kept, d) <= listBytes {
			break
		}
		if d.brief {
			d.blockers = 0
		}
		d.brief = true
		kept = shorten(all, d)
	}
	if len(kept) > 0 {
		listed = make([]v1alpha1.NodeMaintenanceNodeStatus, 0, len(kept))
	}
	for _, s := range kept {
		entry := s.NodeMaintenanceNodeStatus
		entry.DrainTargets = s.target.written(d).lines
		entry.Blockers = entry.Blockers[:min(d.blockers, len(entry.Blockers))]
		if !d.retained {
			entry.Retained = nil
		}
		listed = append(listed, entry)
	}
	return listed, len(all) - len(kept)
}

// listedOf are the nodes that a status describes: all until the maintenance is complete,
// then those that something keeps from being given back.
func (m *maintenance) listedOf(statuses []nodeStatus) []*nodeStatus {
	var all []*nodeStatus
	for i := range statuses {
		if m.stage != v1alpha1.StageComplete || len(statuses[i].Blockers) > 0 {
			all = append(all, &statuses[i])
		}
	}
	return all
}

// shorten puts nodes that are not drained first, blocked ones before others, and leaves
// out the last ones until the rest is short enough.
func shorten(all []*nodeStatus, d detail) []*nodeStatus {
	common := commonTarget(all)
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *nodeStatus) int {
		return cmp.Or(
			cmp.Compare(ones(a.target.set.Key() == common), ones(b.target.set.Key() == common)),
			compareProgress(a, b),
		)
	})
	size := 0
	for n, one := range sorted {
		size += one.size(d)
		replaceable := n > 0 && sorted[n-1].target.set.Key() == common
		if size > listBytes && replaceable {
			// The last one stands in and so stays the last.
			return append(undrainedFirst(sorted[:n-1]), sorted[n-1])
		}
	}
	return undrainedFirst(sorted)
}

func undrainedFirst(statuses []*nodeStatus) []*nodeStatus {
	slices.SortStableFunc(statuses, compareProgress)
	return statuses
}

// compareProgress puts blocked nodes first and drained ones last.
func compareProgress(a, b *nodeStatus) int {
	return cmp.Or(
		cmp.Compare(ones(a.drained), ones(b.drained)),
		cmp.Compare(ones(len(a.Blockers) == 0), ones(len(b.Blockers) == 0)),
	)
}

// commonTarget is the target that most nodes have, the least key on a tie.
func commonTarget(statuses []*nodeStatus) string {
	counts := map[string]int{}
	for _, one := range statuses {
		counts[one.target.set.Key()]++
	}
	common := ""
	for key, number := range counts {
		if best := counts[common]; number > best || number == best && key < common {
			common = key
		}
	}
	return common
}

// written is the target as a list of this detail shows it.
func (t *target) written(d detail) rendering {
	if d.brief {
		return t.brief
	}
	return t.full
}

// nodeBytes is more than what a listed node takes in the object without its name,
// targets, state, message, awaited nodes and blockers.
const nodeBytes = 160

// size is about how many bytes the node takes in the object.
func (s *nodeStatus) size(d detail) int {
	size := nodeBytes + len(s.NodeRef.Name) + len(`"state":"",`) + len(s.State) + len(s.DrainMessage) + len(s.FastForwardedBy) + s.target.written(d).size
	for _, awaited := range s.AwaitedNodes {
		size += len(`"awaitedNodes":[{"name":""}],`) + len(awaited.Name)
	}
	if s.blockerBytes == nil {
		s.blockerBytes, s.retainedBytes = sizesOf(s.Blockers), sizesOf(s.Retained)
	}
	size += s.blockerBytes[min(d.blockers, len(s.Blockers))]
	if d.retained {
		size += s.retainedBytes[len(s.Retained)]
	}
	return size
}

// noBytes is what no blockers take.
var noBytes = []int{0}

// sizesOf is how many bytes the first blockers take in the object, by how many.
func sizesOf(blockers []v1alpha1.Blocker) []int {
	if len(blockers) == 0 {
		return noBytes
	}
	sizes := make([]int, 1, len(blockers)+1)
	for i := range blockers {
		// A blocker always marshals: it is nothing but words, numbers and a time.
		text, _ := json.Marshal(&blockers[i])
		sizes = append(sizes, sizes[i]+len(text)+1)
	}
	return sizes
}

func sizeOf(statuses []*nodeStatus, d detail) int {
	size := 0
	for _, one := range statuses {
		size += one.size(d)
	}
	return size
}
