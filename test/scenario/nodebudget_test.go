package scenario

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Two rollouts would upgrade two nodes each at the same time. A NodeBudget over the four nodes lets
// one start at a time; the other rollout names the budget and the node. Both complete.
func TestTwoRolloutsShareANodeBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three", "four")
	spec := v1alpha1.NodeBudgetSpec{NodeSelector: upgrading(nodes, 1).NodeSelector, MaxUnavailable: new(intstr.FromInt32(1))}
	budget := &v1alpha1.NodeBudget{ObjectMeta: metav1.ObjectMeta{Name: w.name("shared")}, Spec: spec}
	w.create(budget)
	t.Cleanup(func() { w.must("delete the budget", w.remove(budget)) })
	work := w.work(nodes)
	work.rest(true)
	w.rollOut("first", upgrading(nodes[:2], 2))
	w.awaitWorking("first", map[string]string{nodes[0]: v1alpha1.RolloutNodeDrained})
	w.rollOut("second", upgrading(nodes[2:], 2))

	for _, name := range []string{"first", "second"} {
		w.awaitRollout(name, "waiting for the budget", func(s *v1alpha1.NodeRolloutStatus) bool {
			return slices.ContainsFunc(s.Waiting, func(group v1alpha1.RolloutWait) bool {
				return group.Reason == v1alpha1.RolloutWaitsForNodeBudget && strings.Contains(group.Message, budget.Name) && strings.Contains(group.Message, nodes[0])
			})
		})
	}
	await(w, "one node counted", &v1alpha1.NodeBudget{}, budget.Name, func(b *v1alpha1.NodeBudget) bool {
		return b.Status.NodeCount == 4 && b.Status.UnavailableCount == 1 && len(b.Status.Working) == 1 && b.Status.Working[0].Name == nodes[0]
	})
	work.rest(false)
	w.reports(nodes[0], newKubelet)
	w.awaitRolloutComplete("first", v1alpha1.ReasonRolloutComplete)
	w.awaitRolloutComplete("second", v1alpha1.ReasonRolloutComplete)
	work.assertAtMost(1)
	await(w, "no node counted", &v1alpha1.NodeBudget{}, budget.Name, func(b *v1alpha1.NodeBudget) bool {
		return b.Status.UnavailableCount == 0 && len(b.Status.Working) == 0
	})
}

// rest has the workers do nothing, or go on.
func (ws *workers) rest(idle bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.idle = idle
}
