package bridge

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// metrics of the controller. No label holds the name of an object: there is one for each bridge
// that is switched on.
type metrics struct {
	bridges []core.Name
	now     func() time.Time

	mu sync.Mutex
	// at has each Machine that is being deleted with our hook on it.
	at map[request]waitState
}

// waitState says for how long a Machine waits, and for whom.
type waitState struct {
	// ours is true while its controller waits for nobody but us, since when.
	ours  bool
	since time.Time
}

var (
	waitingMachines = prometheus.NewDesc("ebbtide_bridge_waiting_machines",
		"Machines of another controller whose deletion waits only for Ebbtide.", []string{"bridge"}, nil)
	oldestWait = prometheus.NewDesc("ebbtide_bridge_oldest_wait_seconds",
		"Longest time that the deletion of a Machine of another controller has waited for Ebbtide; 0 if none waits.", []string{"bridge"}, nil)
)

func newMetrics(registry prometheus.Registerer, all []kind, now func() time.Time) *metrics {
	m := &metrics{now: now, at: map[request]waitState{}}
	for i := range all {
		m.bridges = append(m.bridges, all[i].bridge)
	}
	return kube.Register(registry, m)
}

// Describe returns what there is.
func (m *metrics) Describe(all chan<- *prometheus.Desc) {
	all <- waitingMachines
	all <- oldestWait
}

// Collect reports the Machines that wait now.
func (m *metrics) Collect(all chan<- prometheus.Metric) {
	counts, oldest := m.waits()
	for _, bridge := range m.bridges {
		all <- prometheus.MustNewConstMetric(waitingMachines, prometheus.GaugeValue, counts[bridge], string(bridge))
		all <- prometheus.MustNewConstMetric(oldestWait, prometheus.GaugeValue, oldest[bridge].Seconds(), string(bridge))
	}
}

func (m *metrics) waits() (counts map[core.Name]float64, oldest map[core.Name]time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	counts, oldest = map[core.Name]float64{}, map[core.Name]time.Duration{}
	for q, here := range m.at {
		if here.ours {
			counts[q.bridge]++
			oldest[q.bridge] = max(oldest[q.bridge], now.Sub(here.since))
		}
	}
	return counts, oldest
}

// note has seen a Machine; nil is gone.
func (m *metrics) note(q request, machine *core.Machine, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if machine == nil || !machine.Deleting || !machine.Hooked || !machine.Waits {
		delete(m.at, q)
		return
	}
	before, known := m.at[q]
	here := waitState{ours: len(machine.Others) == 0}
	switch {
	case !here.ours:
	case known && before.ours:
		here.since = before.since
	case known || machine.WaitsSince.IsZero() || machine.WaitsSince.After(now):
		// It was seen that others were waited for until now.
		here.since = now
	default:
		here.since = machine.WaitsSince
	}
	m.at[q] = here
}
