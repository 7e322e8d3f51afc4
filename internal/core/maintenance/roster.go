package maintenance

import (
	"cmp"
	"encoding/json"
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

const (
	// plainRoster is up to how many nodes a list is by name only.
	plainRoster = 1000
	// rosterBytes is what the list may take of the 1 MiB of an object.
	rosterBytes = 900 << 10
)

// detail is how much a list tells of each site.
type detail struct {
	blockers int
	// brief leaves out the lines of a target that its other lines cover.
	brief bool
}

// roster lists the sites of an intent by name, and how many it leaves out.
//
// Past 1,000 nodes those that are not drained come first. A list that would be
// too long first loses blockers and then nodes, drained ones before others. What
// is left out must not lose its target. Therefore only sites whose target is the
// most frequent one are left out, and the last listed site has that same target
// and stands in for them: see standIn. If all others are too many, the targets
// are shown without the lines that make no difference.
func (i *intent) roster() (roster []v1alpha1.NodeMaintenanceNodeStatus, omitted int) {
	shares := i.listed()
	d := detail{}
	for _, d.blockers = range []int{blocker.MaxBlockers, 3, 1, 0} {
		if sizeOf(shares, d) <= rosterBytes {
			break
		}
	}
	kept := shares
	if len(shares) > plainRoster || sizeOf(shares, d) > rosterBytes {
		kept = shorten(shares, d)
	}
	if sizeOf(kept, d) > rosterBytes {
		d.brief = true
		kept = shorten(shares, d)
	}
	for _, one := range kept {
		roster = append(roster, one.status(d))
	}
	return roster, len(shares) - len(kept)
}

// listed are the sites that a status describes: all in Drain, those with a
// blocker in Cordon.
func (i *intent) listed() []*share {
	switch i.stage {
	case v1alpha1.StageDrain:
		return i.shares
	case v1alpha1.StageCordon:
		return slices.DeleteFunc(slices.Clone(i.shares), func(one *share) bool { return len(one.blockers) == 0 })
	default:
		return nil
	}
}

// shorten puts shares that are not drained first and leaves others out until the
// rest is short enough.
func shorten(shares []*share, d detail) []*share {
	common := commonTarget(shares)
	sorted := slices.Clone(shares)
	slices.SortStableFunc(sorted, func(a, b *share) int {
		return cmp.Or(
			cmp.Compare(ones(a.site.target.set.Key() == common), ones(b.site.target.set.Key() == common)),
			cmp.Compare(ones(a.drained()), ones(b.drained())),
		)
	})
	size := 0
	for n, one := range sorted {
		size += one.size(d)
		replaceable := n > 0 && sorted[n-1].site.target.set.Key() == common
		if size > rosterBytes && replaceable {
			// The last one stands in and so stays the last.
			return append(undrainedFirst(sorted[:n-1]), sorted[n-1])
		}
	}
	return undrainedFirst(sorted)
}

func undrainedFirst(shares []*share) []*share {
	slices.SortStableFunc(shares, func(a, b *share) int { return cmp.Compare(ones(a.drained()), ones(b.drained())) })
	return shares
}

// commonTarget is the target that most sites have, the least key on a tie.
func commonTarget(shares []*share) string {
	counts := map[string]int{}
	for _, one := range shares {
		counts[one.site.target.set.Key()]++
	}
	common := ""
	for key, count := range counts {
		if best := counts[common]; count > best || count == best && key < common {
			common = key
		}
	}
	return common
}

// standIn are the drainTargets of the nodes that a status leaves out; none if it
// lists all nodes. They are valid for nodes whose ledger shows that they belong
// to the maintenance: one that came later has no history.
func standIn(m *v1alpha1.NodeMaintenance) []v1alpha1.DrainPlanEntry {
	listed := m.Status.NodeStatuses
	if len(listed) == 0 || len(listed) >= int(m.Status.NodeCount) {
		return nil
	}
	return listed[len(listed)-1].DrainTargets
}

func (s *share) status(d detail) v1alpha1.NodeMaintenanceNodeStatus {
	return v1alpha1.NodeMaintenanceNodeStatus{
		NodeRef:               v1alpha1.NodeReference{Name: s.site.node.Name},
		DrainTargets:          s.site.target.written(d).lines,
		DrainMessage:          s.message + s.turns,
		PodsPendingEvacuation: s.pending,
		PodsEvacuating:        s.evacuating,
		PodsRetained:          s.retained,
		Blockers:              s.blockers[:min(d.blockers, len(s.blockers))],
	}
}

// entryBytes is more than what a listed site takes in the object without its
// name, targets, message and blockers.
const entryBytes = 160

// size is about how many bytes the site takes in the object.
func (s *share) size(d detail) int {
	size := entryBytes + len(s.site.node.Name) + len(s.message) + len(s.turns) + s.site.target.written(d).size
	for _, b := range s.blockers[:min(d.blockers, len(s.blockers))] {
		text, _ := json.Marshal(b)
		size += len(text)
	}
	return size
}

func sizeOf(shares []*share, d detail) int {
	size := 0
	for _, one := range shares {
		size += one.size(d)
	}
	return size
}
