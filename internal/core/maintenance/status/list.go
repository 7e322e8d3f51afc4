package status

import (
	"cmp"
	"encoding/json"
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

const (
	// PlainNodes is the number of nodes up to which a list is by name only.
	PlainNodes = 1000
	listBytes  = 900 << 10 // of the 1 MiB of an object
)

// Node is a complete entry of nodeStatuses, with its drainTargets apart.
type Node struct {
	v1alpha1.NodeMaintenanceNodeStatus

	Targets                     *Targets
	Drained                     bool
	blockerBytes, retainedBytes []int
}

// Targets holds the drainTargets of a node as a status shows them.
type Targets struct {
	// Key is the same for targets that cover the same pods.
	Key string
	// Full has a line for every selector, Brief only those that make a difference.
	Full, Brief Rendering
}

// Rendering holds drainTargets with their size in bytes.
type Rendering struct {
	Lines []v1alpha1.DrainPlanEntry
	Size  int
}

// Render measures drainTargets.
func Render(lines []v1alpha1.DrainPlanEntry) Rendering {
	text, _ := json.Marshal(lines)
	return Rendering{Lines: lines, Size: len(text)}
}

type detail struct {
	retained bool
	blockers int
	// brief leaves out the lines of a target that its other lines cover.
	brief bool
}

// List returns nodeStatuses, by name, and the number of nodes that it leaves out.
//
// Past 1,000 nodes those that are not drained come first. A list that would be too long first loses
// the pods that stay, then all blockers of a node but one, then nodes: drained ones and those that
// are not blocked first. A node that is left out must not lose its target. Therefore only nodes
// with the most frequent target are left out, and the last listed node has that target and stands
// in for them: see Omitted. If all others are too many, targets lose the lines that make no
// difference, and at last all blockers.
func List(all []*Node) (listed []v1alpha1.NodeMaintenanceNodeStatus, omitted int) {
	d := detail{retained: true, blockers: blocker.MaxBlockers}
	for _, d.blockers = range []int{d.blockers, d.blockers, 3, 1} {
		if sizeOf(all, d) <= listBytes {
			break
		}
		d.retained = false
	}
	kept := all
	if len(all) > PlainNodes || sizeOf(all, d) > listBytes {
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
	for _, node := range kept {
		listed = append(listed, node.written(d))
	}
	return listed, len(all) - len(kept)
}

// Omitted returns the drainTargets of the nodes that a status leaves out; none if it lists all. They
// are valid for nodes whose ledger lists the maintenance: one that came later has no history.
func Omitted(status *v1alpha1.NodeMaintenanceStatus) []v1alpha1.DrainPlanEntry {
	listed := status.NodeStatuses
	if len(listed) == 0 || len(listed) >= int(status.NodeCount) {
		return nil
	}
	return listed[len(listed)-1].DrainTargets
}

func (n *Node) written(d detail) v1alpha1.NodeMaintenanceNodeStatus {
	entry := n.NodeMaintenanceNodeStatus
	entry.DrainTargets = n.Targets.written(d).Lines
	entry.Blockers = entry.Blockers[:min(d.blockers, len(entry.Blockers))]
	if !d.retained {
		entry.Retained = nil
	}
	return entry
}

// shorten sorts nodes by their progress, and cuts the list until it is short enough.
func shorten(all []*Node, d detail) []*Node {
	common := commonTarget(all)
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *Node) int {
		return cmp.Or(
			cmp.Compare(ones(a.Targets.Key == common), ones(b.Targets.Key == common)),
			compareProgress(a, b),
		)
	})
	size := 0
	for n, one := range sorted {
		size += one.size(d)
		replaceable := n > 0 && sorted[n-1].Targets.Key == common
		if size > listBytes && replaceable {
			// The last one stands in for the others, so it stays the last.
			slices.SortStableFunc(sorted[:n-1], compareProgress)
			return sorted[:n]
		}
	}
	slices.SortStableFunc(sorted, compareProgress)
	return sorted
}

// compareProgress puts blocked nodes first and drained ones last.
func compareProgress(a, b *Node) int {
	return cmp.Or(
		cmp.Compare(ones(a.Drained), ones(b.Drained)),
		cmp.Compare(ones(len(a.Blockers) == 0), ones(len(b.Blockers) == 0)),
	)
}

// commonTarget returns the target that most nodes have, the least key on a tie.
func commonTarget(statuses []*Node) string {
	counts := map[string]int{}
	for _, one := range statuses {
		counts[one.Targets.Key]++
	}
	common := ""
	for key, number := range counts {
		if best := counts[common]; number > best || number == best && key < common {
			common = key
		}
	}
	return common
}

func (t *Targets) written(d detail) Rendering {
	if d.brief {
		return t.Brief
	}
	return t.Full
}

// nodeBytes bounds a listed node without the parts that size adds up.
const nodeBytes = 160

// size estimates the bytes that the node takes in the object.
func (n *Node) size(d detail) int {
	size := nodeBytes + len(n.NodeRef.Name) + len(`"state":"",`) + len(n.State) + len(n.DrainMessage) + len(n.FastForwardedBy) + n.Targets.written(d).Size
	if n.DrainedTime != nil {
		size += len(`"drainedTime":"2026-03-01T22:00:00Z",`)
	}
	for _, awaited := range n.AwaitedNodes {
		size += len(`"awaitedNodes":[{"name":""}],`) + len(awaited.Name)
	}
	if n.blockerBytes == nil {
		n.blockerBytes, n.retainedBytes = sizesOf(n.Blockers), sizesOf(n.Retained)
	}
	size += n.blockerBytes[min(d.blockers, len(n.Blockers))]
	if d.retained {
		size += n.retainedBytes[len(n.Retained)]
	}
	return size
}

var noBytes = []int{0}

func sizesOf(blockers []v1alpha1.Blocker) []int {
	if len(blockers) == 0 {
		return noBytes
	}
	sizes := make([]int, 1, len(blockers)+1)
	for i := range blockers {
		text, _ := json.Marshal(&blockers[i])
		sizes = append(sizes, sizes[i]+len(text)+1)
	}
	return sizes
}

func sizeOf(statuses []*Node, d detail) int {
	size := 0
	for _, one := range statuses {
		size += one.size(d)
	}
	return size
}
