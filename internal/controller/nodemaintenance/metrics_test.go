package nodemaintenance

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

func TestGaugesShowTheLastPassAndCountANodeOnce(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	draining := aMaintenance("upgrade", "old")
	idle := aMaintenance("later", "old")
	idle.Spec.Stage = v1alpha1.StageIdle
	both := &group.Group{Maintenances: []string{"later", "upgrade"}, Nodes: []string{"one", "two"}}
	decided := func(pods int32) maintenance.Decision {
		return maintenance.Decision{
			Maintenances: []maintenance.MaintenanceDecision{
				{Maintenance: draining, Status: v1alpha1.NodeMaintenanceStatus{NodeCount: 2}},
				{Maintenance: idle, Status: v1alpha1.NodeMaintenanceStatus{NodeCount: 2}},
			},
			Blocked: map[string]map[v1alpha1.BlockerType]int32{
				"one": {v1alpha1.BlockerPDBExhausted: pods}, "two": {v1alpha1.BlockerPDBExhausted: 4},
			},
		}
	}
	m.show(both, decided(9))
	m.show(both, decided(3))

	want := `
# HELP ebbtide_blocked_pods Pods that have to leave a node and do not, by the type of what blocks them.
# TYPE ebbtide_blocked_pods gauge
ebbtide_blocked_pods{type="PDBExhausted"} 7
# HELP ebbtide_maintenance_nodes Nodes that NodeMaintenances select, by the stage of the NodeMaintenance.
# TYPE ebbtide_maintenance_nodes gauge
ebbtide_maintenance_nodes{stage="Drain"} 2
ebbtide_maintenance_nodes{stage="Idle"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "ebbtide_blocked_pods", "ebbtide_maintenance_nodes"); err != nil {
		t.Error(err)
	}

	m.show(&group.Group{Maintenances: []string{"later"}, Nodes: []string{"one", "two"}}, maintenance.Decision{})
	m.gone(group.Maintenance("upgrade"))
	if n, err := testutil.GatherAndCount(registry, "ebbtide_blocked_pods", "ebbtide_maintenance_nodes"); err != nil || n != 0 {
		t.Errorf("%d series are left after the last maintenance is gone, want none (%v)", n, err)
	}
}

func TestADrainIsTimedWhenItEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"))
	r := w.manager()
	node := w.node("one")
	node.Status.Conditions = []corev1.NodeCondition{condition(v1alpha1.NodeDrainInProgress, noon)}
	ended := maintenance.NodeDecision{Node: node, Conditions: []corev1.NodeCondition{condition(v1alpha1.NodeDrained, noon.Add(90*time.Second))}}

	w.act(r, nil, ended)
	ended.Node = w.node("one")
	w.act(r, nil, ended)

	registry := prometheus.NewRegistry()
	registry.MustRegister(r.metrics.drainDuration)
	got, err := registry.Gather()
	w.must(err)
	if h := got[0].GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 90 {
		t.Errorf("%d drains took %v s, want one of 90 s", h.GetSampleCount(), h.GetSampleSum())
	}
}

func condition(kind corev1.NodeConditionType, since time.Time) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}
}
