package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/difference"
)

// cordonedBy is a node that maintenances hold; it has the taint of cordoned nodes since then,
// unless that is zero.
func cordonedBy(name string, since time.Time, holders ...string) *corev1.Node {
	ledger := fmt.Sprintf(`{"wasUnschedulable":false,"holders":["%s"]}`, strings.Join(holders, `","`))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.CordonAnnotation: ledger}}}
	if !since.IsZero() {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: since}}}
	}
	return node
}

func TestCordonedNodesAreListedByAge(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	holds := func(name string, since time.Time) *v1alpha1.NodeMaintenance {
		m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain}}
		m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageCordon, StartTimestamp: &metav1.Time{Time: since}}}
		return m
	}
	plain := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "by-a-person"}}
	list := view.Of(&view.Snapshot{
		Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{holds("kernel", noon.Add(-3*time.Hour)), holds("disk", noon.Add(-2*time.Hour))},
		Cordoned: []*corev1.Node{
			plain,
			cordonedBy("nobody-knows", time.Time{}, "gone"),
			cordonedBy("joined-later", noon.Add(-time.Hour), "kernel"),
			cordonedBy("of-two", time.Time{}, "disk", "kernel"),
			cordonedBy("was-cordoned-before", noon.Add(-9*time.Hour), "disk"),
			cordonedBy("of-many", noon.Add(-time.Minute), "a", "b", "c", "d", "e", "f", "g"),
		},
	})
	var got []string
	for _, c := range list.Cordoned {
		since := "unknown"
		if c.SinceTime != nil {
			since = noon.Sub(c.SinceTime.Time).String()
		}
		got = append(got, fmt.Sprintf("%s %s %v+%d", c.Node, since, c.Maintenances, c.OmittedMaintenancesCount))
	}
	want := []string{
		"of-two 3h0m0s [disk kernel]+0", "was-cordoned-before 2h0m0s [disk]+0", "joined-later 1h0m0s [kernel]+0",
		"of-many 1m0s [a b c d e]+2", "nobody-knows unknown [gone]+0",
	}
	difference.None(t, "cordoned nodes", want, got)
}

func TestCordonedNodesAreBounded(t *testing.T) {
	t.Parallel()
	all := slices.Repeat([]*corev1.Node{cordonedBy("node", time.Time{}, "kernel")}, 5_003)
	list := view.Of(&view.Snapshot{Cordoned: all})
	if len(list.Cordoned) != 5_000 || list.OmittedCordonedCount != 3 {
		t.Errorf("%d are listed and %d left out", len(list.Cordoned), list.OmittedCordonedCount)
	}
}
