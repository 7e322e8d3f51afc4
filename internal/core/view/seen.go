package view

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// recent is the number of departures that the pace is based on.
const recent = 30

// Memory holds the departures of pods, which leave no trace in the API. The zero value is empty.
type Memory struct {
	known map[types.UID]*drain
}

type drain struct {
	since      time.Time
	departures []departure
	nodes      map[string]*departed
}

// departure is a number of pods that were gone at once.
type departure struct {
	at   time.Time
	pods int
}

type departed struct{ left, gone int }

// See adds an observation of maintenances, and returns the progress of each by name.
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

func (d *drain) pods() int {
	pods := 0
	for _, one := range d.departures {
		pods += one.pods
	}
	return pods
}

func (d *drain) progress() Progress {
	p := Progress{Since: d.since, Gone: d.pods(), Nodes: make(map[string]int, len(d.nodes))}
	for name, node := range d.nodes {
		p.Nodes[name] = node.gone
	}
	return p
}
