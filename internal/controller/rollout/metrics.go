package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

// maxShown bounds the rollouts with metrics. Incomplete ones come first.
const maxShown = 50

var (
	nodes = prometheus.NewDesc("ebbtide_rollout_nodes",
		"Nodes that a NodeRollout selects, by state: done, working, waiting, failed or skipped. At most 50 rollouts are shown.",
		[]string{"rollout", "state"}, nil)
	degraded = prometheus.NewDesc("ebbtide_rollout_degraded",
		"1 if nodes of a NodeRollout have failed, otherwise 0.",
		[]string{"rollout"}, nil)
	progress = prometheus.NewDesc("ebbtide_rollout_last_progress_timestamp_seconds",
		"Time when this manager last saw a node of a NodeRollout change its state. Absent while the rollout waits only for time, for a gate or for a user.",
		[]string{"rollout"}, nil)
)

// metrics collects the metrics of the last decision. It is safe for concurrent use.
type metrics struct {
	mu    sync.Mutex
	shown []prometheus.Metric
	// moved holds the last progress by rollout.
	moved map[string]movement
}

// movement is the state that progress changes, and when it has changed last.
type movement struct {
	state string
	at    time.Time
}

func newMetrics(registry prometheus.Registerer) *metrics {
	return kube.Register(registry, &metrics{moved: map[string]movement{}})
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(all chan<- *prometheus.Desc) {
	all <- nodes
	all <- degraded
	all <- progress
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(all chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.shown {
		all <- one
	}
}

// show replaces the metrics by those of a decision.
func (m *metrics) show(decisions []core.RolloutDecision, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	moved := make(map[string]movement, len(decisions))
	for i := range decisions {
		name := decisions[i].Rollout.Name
		moved[name] = m.moved[name].next(&decisions[i].Status, now)
	}
	m.moved, m.shown = moved, nil
	sorted := slices.SortedStableFunc(slices.Values(decisions), incompleteFirst)
	for i := range sorted[:min(len(sorted), maxShown)] {
		m.shown = append(m.shown, metricsOf(&sorted[i], moved[sorted[i].Rollout.Name].at)...)
	}
}

// next returns the movement after a decision.
func (m movement) next(status *v1alpha1.NodeRolloutStatus, now time.Time) movement {
	if state := progressOf(status); state != m.state {
		return movement{state, now}
	}
	return m
}

// metricsOf returns the metrics of a rollout that moved at a time.
func metricsOf(d *core.RolloutDecision, moved time.Time) (all []prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, more ...string) {
		labels := append([]string{d.Rollout.Name}, more...)
		all = append(all, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...))
	}
	gauge(nodes, float64(d.Status.DoneCount), "done")
	gauge(nodes, float64(d.Status.WorkingCount), "working")
	gauge(nodes, float64(d.Status.WaitingCount), "waiting")
	gauge(nodes, float64(d.Status.FailedCount), "failed")
	gauge(nodes, float64(d.Status.SkippedCount), "skipped")
	failed := 0.0
	if apimeta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionRolloutDegraded) {
		failed = 1
	}
	gauge(degraded, failed)
	if shouldProgress(d.Rollout, &d.Status) {
		gauge(progress, float64(moved.Unix()))
	}
	return all
}

func incompleteFirst(a, b core.RolloutDecision) int {
	complete := func(d core.RolloutDecision) int {
		if apimeta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionRolloutComplete) {
			return 1
		}
		return 0
	}
	return cmp.Compare(complete(a), complete(b))
}

// progressOf returns the state that progress changes.
func progressOf(status *v1alpha1.NodeRolloutStatus) string {
	state := fmt.Sprint(status.DoneCount, status.FailedCount, status.SkippedCount, status.WaitingCount)
	for i := range status.Working {
		one := &status.Working[i]
		state += " " + one.Name + " " + one.NodeMaintenanceName + " " + one.Reason
	}
	return state
}

// waitsForOthers are the reasons of nodes that wait for time, for a user or for other nodes.
var waitsForOthers = []string{
	v1alpha1.RolloutWaitsForWindow, v1alpha1.RolloutWaitsForBlackout, v1alpha1.RolloutWaitsForCanary, v1alpha1.RolloutWaitsForApproval, v1alpha1.RolloutWaitsForUser,
	v1alpha1.RolloutWaitsForFailures, v1alpha1.RolloutWaitsForOtherNodes, v1alpha1.RolloutWaitsForGate,
}

// shouldProgress reports whether nodes are under maintenance, or wait for something that may never
// come.
func shouldProgress(rollout *v1alpha1.NodeRollout, status *v1alpha1.NodeRolloutStatus) bool {
	if rollout.Spec.State != v1alpha1.RolloutRunning {
		return false
	}
	return status.WorkingCount > 0 || slices.ContainsFunc(status.Waiting, func(w v1alpha1.RolloutWait) bool {
		return !slices.Contains(waitsForOthers, w.Reason)
	})
}
