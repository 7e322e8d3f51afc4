package nodemaintenance

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// metrics holds the metrics of the controller. No label holds the name of an object.
type metrics struct {
	nodes           *prometheus.GaugeVec
	blockedPods     *prometheus.GaugeVec
	drainDuration   prometheus.Histogram
	conditionErrors prometheus.Counter
	panics          prometheus.Counter

	// parts holds the share of each maintenance and each node in gauges, sums their sums by gauge and
	// label.
	mu    sync.Mutex
	parts map[group.Member][]part
	sums  map[part]int
}

func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		parts: map[group.Member][]part{}, sums: map[part]int{},
		nodes: kube.Register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ebbtide_maintenance_nodes",
			Help: "Nodes that NodeMaintenances select, by the stage of the NodeMaintenance.",
		}, []string{"stage"})),
		blockedPods: kube.Register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ebbtide_blocked_pods",
			Help: "Pods that have to leave a node and do not, by the type of what blocks them.",
		}, []string{"type"})),
		drainDuration: kube.Register(registry, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ebbtide_node_drain_duration_seconds",
			Help:    "Time from the first pod that had to leave a node until none was left.",
			Buckets: prometheus.ExponentialBuckets(1, 3, 10),
		})),
		conditionErrors: kube.Register(registry, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ebbtide_condition_write_errors_total",
			Help: "Node conditions that the API server refused.",
		})),
		panics: kube.Register(registry, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ebbtide_decision_panics_total",
			Help: "Decisions about groups of NodeMaintenances that ended in a panic, which is a defect of Ebbtide.",
		})),
	}
}

// show replaces what the last passes over the members of a group have added to the gauges.
func (m *metrics) show(g *group.Group, decision maintenance.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for member := range g.Members {
		m.drop(member)
	}
	for i := range decision.Maintenances {
		one := &decision.Maintenances[i]
		// A finished maintenance selects no node.
		if nodes := one.Status.NodeCount; nodes > 0 {
			m.add(group.Maintenance(one.Maintenance.Name), m.nodes, string(one.Maintenance.Spec.Stage), nodes)
		}
	}
	for node, blocked := range decision.Blocked {
		for kind, pods := range blocked {
			m.add(group.Node(node), m.blockedPods, string(kind), pods)
		}
	}
}

type part struct {
	gauge *prometheus.GaugeVec
	label string
	value int32
}

func (m *metrics) add(member group.Member, gauge *prometheus.GaugeVec, label string, value int32) {
	m.parts[member] = append(m.parts[member], part{gauge, label, value})
	m.move(gauge, label, value)
}

func (m *metrics) drop(member group.Member) {
	for _, one := range m.parts[member] {
		m.move(one.gauge, one.label, -one.value)
	}
	delete(m.parts, member)
}

// gone removes what a member that is gone has added.
func (m *metrics) gone(member group.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(member)
}

// move changes a sum. A series of 0 disappears.
func (m *metrics) move(gauge *prometheus.GaugeVec, label string, value int32) {
	key := part{gauge: gauge, label: label}
	m.sums[key] += int(value)
	if m.sums[key] == 0 {
		delete(m.sums, key)
		gauge.DeleteLabelValues(label)
		return
	}
	gauge.WithLabelValues(label).Set(float64(m.sums[key]))
}

// conditionsChanged counts a drain that has ended: the node's DrainInProgress
// was True and its Drained becomes True.
func (m *metrics) conditionsChanged(before, after []corev1.NodeCondition) {
	draining := trueCondition(before, v1alpha1.NodeDrainInProgress)
	drained := trueCondition(after, v1alpha1.NodeDrained)
	if draining != nil && drained != nil {
		m.drainDuration.Observe(drained.LastTransitionTime.Sub(draining.LastTransitionTime.Time).Seconds())
	}
}

func trueCondition(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == kind && conditions[i].Status == corev1.ConditionTrue {
			return &conditions[i]
		}
	}
	return nil
}
