package scenario

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/cluster"
)

// A rollout comes to its end although its manager is killed behind the record of a start, behind the
// creation of a NodeMaintenance, and later: no node is maintained twice, and never are two.
func TestLongRolloutOutlivesTheManager(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, cluster.Spec{Tapped: true})
	nodes := w.nodes("one", "two", "three")
	work := w.work(nodes)
	var mu sync.Mutex
	var writes []string
	w.cluster.Witness(t, func(write cluster.Write) (kill bool) {
		mu.Lock()
		defer mu.Unlock()
		what := write.String()
		if !strings.Contains(what, "noderollouts") && !(strings.Contains(what, "nodemaintenances") && strings.Contains(write.Body, v1alpha1.RolloutAttemptAnnotation)) {
			return false
		}
		writes = append(writes, what)
		return slices.Contains([]int{2, 3, 6}, len(writes))
	})
	before := w.cluster.Kills()
	w.rollOut("kubelet", upgrading(nodes, 1))

	w.awaitRolloutComplete("kubelet", v1alpha1.ReasonRolloutComplete)
	work.assertAtMost(1)
	all := w.maintenancesOf("kubelet")
	for _, m := range all {
		if !maintenance.Finished(&m) {
			t.Errorf("NodeMaintenance %s is in stage %s", m.Name, m.Spec.Stage)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if kills := w.cluster.Kills() - before; kills < 3 || len(all) != len(nodes) {
		t.Errorf("the manager was killed %d times, and made %d NodeMaintenances; it wrote\n%s", kills, len(all), strings.Join(writes, "\n"))
	}
}
