package nodemaintenance

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// metrics are what the controller shows to Prometheus. No label holds the name
// of an object.
type metrics struct {
	nodes           *prometheus.GaugeVec
	blockedPods     *prometheus.GaugeVec
	drainDuration   prometheus.Histogram
	conditionErrors prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
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
	}
}

// show sets the gauges to what a pass has decided.
func (m *metrics) show(decisions []maintenance.MaintenanceDecision) {
	m.nodes.Reset()
	m.blockedPods.Reset()
	shown := map[string]bool{}
	for i := range decisions {
		decision := &decisions[i]
		m.nodes.WithLabelValues(string(decision.Maintenance.Spec.Stage)).Add(float64(decision.Status.NodeCount))
		for j := range decision.Status.NodeStatuses {
			node := &decision.Status.NodeStatuses[j]
			if shown[node.NodeRef.Name] {
				continue
			}
			shown[node.NodeRef.Name] = true
			m.showBlockers(node.Blockers)
		}
	}
}

func (m *metrics) showBlockers(blockers []v1alpha1.Blocker) {
	for i := range blockers {
		m.blockedPods.WithLabelValues(string(blockers[i].Type)).Add(float64(blockers[i].PodCount))
	}
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
