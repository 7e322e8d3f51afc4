package maintenance

import (
	"cmp"
	"encoding/json"
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// fullRoster is up to how many nodes all are listed, whatever their size.
	fullRoster = 1000
	// rosterBytes is what a longer list may take of the 1 MiB of an object.
	rosterBytes = 900 << 10
)

// roster lists the sites of an intent by name, and how many it leaves out.
//
// Past 1,000 nodes the ones that are not drained come first and the list ends
// where it would become too long. What is left out must not lose its target.
// Therefore only sites whose target is the most frequent one are left out, and
// the last listed site has that same target and stands in for them: see standIn.
func (i *intent) roster() (roster []v1alpha1.NodeMaintenanceNodeStatus, omitted int) {
	shares := i.listed()
	if len(shares) > fullRoster {
		shares, omitted = shorten(shares)
	}
	for _, one := range shares {
		roster = append(roster, one.status())
	}
	return roster, omitted
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

// shorten leaves shares out until the rest is short enough.
func shorten(shares []*share) (kept []*share, omitted int) {
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
		size += one.size()
		replaceable := n > 0 && sorted[n-1].site.target.set.Key() == common
		if size > rosterBytes && replaceable {
			return inOrder(sorted[:n]), len(sorted) - n
		}
	}
	return inOrder(sorted), 0
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

// inOrder puts those that are not drained first. The last one stays the last: it
// is the one that stands in.
func inOrder(sorted []*share) []*share {
	last := len(sorted) - 1
	slices.SortStableFunc(sorted[:last], func(a, b *share) int {
		return cmp.Compare(ones(a.drained()), ones(b.drained()))
	})
	return sorted
}

// standIn are the drainTargets of the nodes that a status leaves out; none if it
// lists all nodes. They are valid for nodes whose ledger shows that they belong
// to the maintenance: one that came later has no history.
func standIn(m *v1alpha1.NodeMaintenance) []v1alpha1.DrainPlanEntry {
	listed := m.Status.NodeStatuses
	if len(listed) == 0 || len(listed) >= int(m.Status.Nodes) {
		return nil
	}
	return listed[len(listed)-1].DrainTargets
}

func (s *share) status() v1alpha1.NodeMaintenanceNodeStatus {
	return v1alpha1.NodeMaintenanceNodeStatus{
		NodeRef:               v1alpha1.NodeReference{Name: s.site.node.Name},
		DrainTargets:          s.site.target.lines,
		DrainMessage:          s.message,
		PodsPendingEvacuation: s.pending,
		PodsEvacuating:        s.evacuating,
		PodsRetained:          s.retained,
		Blockers:              s.blockers,
	}
}

// entryBytes is more than what a listed site takes in the object without its
// name, targets, message and blockers.
const entryBytes = 160

// size is about how many bytes the site takes in the object.
func (s *share) size() int {
	size := entryBytes + len(s.site.node.Name) + len(s.message) + s.site.target.size
	for _, b := range s.blockers {
		text, _ := json.Marshal(b)
		size += len(text)
	}
	return size
}
