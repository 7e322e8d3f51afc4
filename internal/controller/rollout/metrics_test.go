package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
)

// The metrics are those of the last decision. Progress is only shown of rollouts that do not wait for
// time or for a user.
func TestMetricsShowTheLastDecision(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	decided := func(working, waiting int32, reason string) []core.RolloutDecision {
		status := v1alpha1.NodeRolloutStatus{DoneCount: 2, WorkingCount: working, WaitingCount: waiting, FailedCount: 1, SkippedCount: 4}
		status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRolloutDegraded, Status: metav1.ConditionTrue}}
		if waiting > 0 {
			status.Waiting = []v1alpha1.RolloutWait{{Reason: reason, NodeCount: waiting}}
		}
		return []core.RolloutDecision{{Rollout: aRollout("kernel"), Status: status}}
	}
	const nodes = `# HELP ebbtide_rollout_nodes Nodes that a NodeRollout selects, by state: done, working, waiting, failed or skipped. At most 50 rollouts are shown.
# TYPE ebbtide_rollout_nodes gauge
ebbtide_rollout_nodes{rollout="kernel",state="done"} 2
ebbtide_rollout_nodes{rollout="kernel",state="failed"} 1
ebbtide_rollout_nodes{rollout="kernel",state="skipped"} 4
ebbtide_rollout_nodes{rollout="kernel",state="waiting"} 3
ebbtide_rollout_nodes{rollout="kernel",state="working"} 1
`
	m.show(decided(1, 3, v1alpha1.RolloutWaitsForUnavailable), noon)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(nodes), "ebbtide_rollout_nodes"); err != nil {
		t.Error(err)
	}
	progress := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return fmt.Sprintf("# HELP ebbtide_rollout_last_progress_timestamp_seconds Time when this manager last saw a node of a NodeRollout change its state. "+
			"Absent while the rollout waits only for time, for a gate or for a user.\n# TYPE ebbtide_rollout_last_progress_timestamp_seconds gauge\n"+
			"ebbtide_rollout_last_progress_timestamp_seconds{rollout=\"kernel\"} %d\n", at.Unix())
	}
	later := noon.Add(time.Hour)
	for name, test := range map[string]struct {
		decided []core.RolloutDecision
		want    time.Time
	}{
		"no progress":       {decided(1, 3, v1alpha1.RolloutWaitsForUnavailable), noon},
		"progress":          {decided(2, 2, v1alpha1.RolloutWaitsForUnavailable), later},
		"waits for a node":  {decided(0, 4, v1alpha1.RolloutWaitsForReady), later},
		"waits for time":    {decided(0, 4, v1alpha1.RolloutWaitsForWindow), time.Time{}},
		"waits for a gate":  {decided(0, 4, v1alpha1.RolloutWaitsForGate), time.Time{}},
		"waits for room":    {decided(0, 4, v1alpha1.RolloutWaitsForRoom), later},
		"waits for answers": {decided(0, 4, v1alpha1.RolloutWaitsForAnswer), later},
		"waits for nothing": {decided(0, 0, ""), time.Time{}},
		"gone":              {nil, time.Time{}},
	} {
		m.show(decided(1, 3, v1alpha1.RolloutWaitsForUnavailable), noon)
		m.show(test.decided, later)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(progress(test.want)), "ebbtide_rollout_last_progress_timestamp_seconds"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m.show(nil, noon)
	}
}

// However many rollouts there are, only some have metrics, those that are not complete first.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	var decided []core.RolloutDecision
	for i := range 2 * maxShown {
		d := core.RolloutDecision{Rollout: aRollout(fmt.Sprint("rollout-", i))}
		if i < maxShown {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRolloutComplete, Status: metav1.ConditionTrue}}
		}
		decided = append(decided, d)
	}
	m.show(decided, noon)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "ebbtide_rollout_degraded" {
			continue
		}
		if len(family.GetMetric()) != maxShown {
			t.Errorf("%d rollouts are shown", len(family.GetMetric()))
		}
		for _, one := range family.GetMetric() {
			if name := one.GetLabel()[0].GetValue(); len(name) < len("rollout-50") || name < "rollout-50" {
				t.Errorf("rollout %s, which is complete, is shown", name)
			}
		}
	}
}
