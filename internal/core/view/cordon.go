package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// Cordon is a node that NodeMaintenances keep cordoned.
type Cordon struct {
	Node                     string       `json:"node"`
	SinceTime                *metav1.Time `json:"sinceTime,omitempty"`
	Maintenances             []string     `json:"maintenances"`
	OmittedMaintenancesCount int          `json:"omittedMaintenancesCount,omitempty"`
}

// cordons returns the longest held nodes first, and the number of omitted ones.
func (s *Snapshot) cordons() (all []Cordon, omitted int) {
	began := map[string]metav1.Time{}
	for _, m := range s.Maintenances {
		if stages := m.Status.StageStatuses; !maintenance.Finished(m) {
			at := slices.IndexFunc(stages, func(stage v1alpha1.StageStatus) bool { return stage.Name == v1alpha1.StageCordon })
			if at >= 0 && stages[at].StartTimestamp != nil {
				began[m.Name] = *stages[at].StartTimestamp
			}
		}
	}
	for _, node := range s.Cordoned {
		if holders := cordon.Holders(node); len(holders) > 0 {
			all = append(all, cordonOf(node, holders, began))
		}
	}
	since := func(c *Cordon) time.Time {
		if c.SinceTime == nil {
			return s.Now
		}
		return c.SinceTime.Time
	}
	slices.SortFunc(all, func(a, b Cordon) int {
		return cmp.Or(since(&a).Compare(since(&b)), cmp.Compare(a.Node, b.Node))
	})
	shown := min(len(all), maxNodes)
	return all[:shown], len(all) - shown
}

// cordonOf dates a cordon by its first maintenance, or by the taint if the node joined later.
func cordonOf(node *corev1.Node, holders []string, began map[string]metav1.Time) Cordon {
	c := Cordon{Node: node.Name, OmittedMaintenancesCount: max(0, len(holders)-maxMaintenances)}
	for i, name := range holders {
		if at, known := began[name]; known && (c.SinceTime == nil || at.Before(c.SinceTime)) {
			c.SinceTime = &at
		}
		if i < maxMaintenances {
			c.Maintenances = append(c.Maintenances, excerpt.Line(name, maxWords))
		}
	}
	for i := range node.Spec.Taints {
		if taint := &node.Spec.Taints[i]; taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil && (c.SinceTime == nil || c.SinceTime.Before(taint.TimeAdded)) {
			c.SinceTime = taint.TimeAdded
		}
	}
	return c
}
