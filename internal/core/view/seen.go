package view

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// recent is how many departures the pace is taken from: what was an hour ago says little.
const recent = 30

// Memory is what somebody remembers who watches maintenances. Nothing else does: what has
// left a node leaves nothing behind. The zero value remembers nothing.
type Memory struct {
	known map[types.UID]*drain
}

// drain is what was seen of one maintenance in Drain.
type drain struct {
	since time.Time
	// departures are those since then, the latest ones only.
	departures []departure
	nodes      map[string]*departed
}

// departure is that so many pods were seen to be gone at once.
type departure struct {
	at   time.Time
	pods int
}

// departed is how many pods a node has, and has lost.
type departed struct{ left, gone int }

// See takes note of maintenances, and returns what was seen of them so far, by name.
func (m *Memory) See(now time.Time, maintenances []*v1alpha1.NodeMaintenance) map[string]Progress {
	known := map[types.UID]*drain{}
	seen := map[string]Progress{}
	for _, one := range maintenances {
		if maintenance.Stage(one) != v1alpha1.StageDrain {
			continue
		}
		d := m.known[one.UID]
		if d == nil {
			d = &drain{since: now, nodes: map[string]*departed{}}
		}
		d.see(now, one.Status.NodeStatuses)
		known[one.UID], seen[one.Name] = d, d.progress()
	}
	m.known = known
	return seen
}

func (d *drain) see(now time.Time, nodes []v1alpha1.NodeMaintenanceNodeStatus) {
	all := 0
	for i := range nodes {
		left := count(nodes[i].PodsPendingEvacuation) + count(nodes[i].PodsEvacuating)
		before := d.nodes[nodes[i].NodeRef.Name]
		if before == nil {
			d.nodes[nodes[i].NodeRef.Name] = &departed{left: left}
			continue
		}
		gone := max(0, before.left-left)
		before.left, before.gone = left, before.gone+gone
		all += gone
	}
	if all > 0 {
		d.departures = append(d.departures, departure{now, all})
	}
	for len(d.departures) > 0 && d.pods()-d.departures[0].pods >= recent {
		d.since, d.departures = d.departures[0].at, d.departures[1:]
	}
}

// pods is how many have gone since then.
func (d *drain) pods() int {
	pods := 0
	for _, one := range d.departures {
		pods += one.pods
	}
	return pods
}

// progress is what was seen, in numbers.
func (d *drain) progress() Progress {
	p := Progress{Since: d.since, Gone: d.pods(), Nodes: make(map[string]int, len(d.nodes))}
	for name, node := range d.nodes {
		p.Nodes[name] = node.gone
	}
	return p
}
