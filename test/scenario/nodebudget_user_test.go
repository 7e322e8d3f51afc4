package scenario

import (
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// budgetOfAll creates a NodeBudget over nodes that also holds NodeMaintenances of users, and allows
// one node. It is deleted with the scenario.
func (w *world) budgetOfAll(nodes []string) (name string) {
	w.t.Helper()
	name = w.name("all")
	budget := &v1alpha1.NodeBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeBudgetSpec{
		NodeSelector: upgrading(nodes, 1).NodeSelector, MaxUnavailable: new(intstr.FromInt32(1)), AppliesTo: v1alpha1.NodeBudgetOfAll,
	}}
	w.create(budget)
	w.t.Cleanup(func() { w.must("delete the budget", w.remove(budget)) })
	return name
}

// awaitAdmitted waits until a NodeBudget lists exactly these nodes.
func (w *world) awaitAdmitted(budget string, nodes ...string) {
	w.t.Helper()
	await(w, "lists "+strings.Join(nodes, ", "), &v1alpha1.NodeBudget{}, budget, func(b *v1alpha1.NodeBudget) bool {
		listed := func(entry v1alpha1.BudgetNode) bool { return slices.Contains(nodes, entry.Name) }
		return len(b.Status.Working) == len(nodes) && !slices.ContainsFunc(b.Status.Working, func(entry v1alpha1.BudgetNode) bool { return !listed(entry) })
	})
}

// awaitHeldBy waits until a maintenance names the NodeBudget that holds its node. The node is untouched.
func (w *world) awaitHeldBy(maintenance, node, budget string) {
	w.t.Helper()
	w.awaitMaintenance(maintenance, "held by NodeBudget "+budget, func(m *v1alpha1.NodeMaintenance) bool {
		status := nodeStatus(m, node)
		return status != nil && status.State == v1alpha1.NodeStateBlocked && slices.ContainsFunc(status.Blockers, func(b v1alpha1.Blocker) bool {
			return b.Type == v1alpha1.BlockerNodeBudget && b.Object.Name == budget
		})
	})
	w.assertUnschedulable(node, false)
	w.awaitHolders(node)
}

// assertRuns wants a pod that has not been asked to leave.
func (w *world) assertRuns(name string) {
	w.t.Helper()
	p := &corev1.Pod{}
	w.get(p, name)
	if p.DeletionTimestamp != nil {
		w.t.Errorf("pod %s was deleted", name)
	}
}

// Three users drain a node each, under a NodeBudget that allows one. The first node is drained, the
// others keep their pods and name the budget. The end of the first lets the second start, and a
// larger budget the third.
func TestNodeBudgetHoldsNodeMaintenancesOfUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	for i, name := range []string{"first", "second", "third"} {
		w.pods(nodes[i], pod{name: name})
	}
	work := w.work(nodes)
	work.rest(true)
	budget := w.budgetOfAll(nodes)
	w.maintain("one", v1alpha1.StageDrain, nodes[:1])
	w.awaitDrained("one")
	w.maintain("two", v1alpha1.StageDrain, nodes[1:2])
	w.awaitHeldBy("two", nodes[1], budget)
	w.maintain("three", v1alpha1.StageDrain, nodes[2:])
	w.awaitHeldBy("three", nodes[2], budget)
	w.awaitAdmitted(budget, nodes[0])
	w.assertRuns("second")
	w.assertRuns("third")

	w.setStage("one", v1alpha1.StageComplete)
	w.awaitDrained("two")
	w.awaitHeldBy("three", nodes[2], budget)
	w.assertRuns("third")
	w.awaitAdmitted(budget, nodes[1])
	work.assertAtMost(1)

	b := &v1alpha1.NodeBudget{}
	w.change(b, budget, func() { b.Spec.MaxUnavailable = new(intstr.FromInt32(2)) })
	w.awaitDrained("three")
	w.awaitAdmitted(budget, nodes[1:]...)
}

// A rollout and a user share a NodeBudget. The node of the user waits for that of the rollout, and
// then comes before the next one of the rollout.
func TestUserAndRolloutShareANodeBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "user")
	work := w.work(nodes)
	work.rest(true)
	budget := w.budgetOfAll(nodes)
	w.rollOut("kubelet", upgrading(nodes[:2], 2))
	w.awaitWorking("kubelet", map[string]string{nodes[0]: v1alpha1.RolloutNodeDrained})
	w.maintain("disk", v1alpha1.StageDrain, nodes[2:])
	w.awaitHeldBy("disk", nodes[2], budget)

	work.rest(false)
	w.reports(nodes[0], newKubelet)
	w.awaitDrained("disk")
	w.awaitAdmitted(budget, nodes[2])
	w.awaitRollout("kubelet", "waiting for the node of the user", func(s *v1alpha1.NodeRolloutStatus) bool {
		return s.DoneCount == 1 && len(s.Working) == 0 && slices.ContainsFunc(s.Waiting, func(group v1alpha1.RolloutWait) bool {
			return group.Reason == v1alpha1.RolloutWaitsForNodeBudget && strings.Contains(group.Message, budget) && strings.Contains(group.Message, nodes[2])
		})
	})
	w.setStage("disk", v1alpha1.StageComplete)
	w.awaitRolloutComplete("kubelet", v1alpha1.ReasonRolloutComplete)
	work.assertAtMost(1)
	w.awaitAdmitted(budget)
}

// The manager is killed behind each of the first writes of a NodeBudget, and behind the cordon of the
// node that it admitted. That node is drained, and the other one starts after it.
func TestLongNodeBudgetOutlivesTheManager(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, cluster.Spec{Tapped: true})
	nodes := w.nodes("one", "two")
	work := w.work(nodes)
	work.rest(true)
	budget := w.name("all")
	var mu sync.Mutex
	var writes []string
	cordons := 0
	w.cluster.Witness(t, func(write cluster.Write) (kill bool) {
		mu.Lock()
		defer mu.Unlock()
		what := write.String()
		switch {
		case strings.Contains(what, budget):
			writes = append(writes, what)
			return len(writes) <= 3
		case strings.HasSuffix(what, nodes[0]) && strings.Contains(write.Body, v1alpha1.CordonAnnotation):
			cordons++
			return cordons == 1
		default:
			return false
		}
	})
	before := w.cluster.Kills()
	w.budgetOfAll(nodes)
	w.maintain("one", v1alpha1.StageDrain, nodes[:1])
	w.awaitAdmitted(budget, nodes[0])
	w.maintain("two", v1alpha1.StageDrain, nodes[1:])

	w.awaitDrained("one")
	w.awaitHeldBy("two", nodes[1], budget)
	w.setStage("one", v1alpha1.StageComplete)
	w.awaitDrained("two")
	w.awaitAdmitted(budget, nodes[1])
	work.assertAtMost(1)
	mu.Lock()
	defer mu.Unlock()
	if kills := w.cluster.Kills() - before; kills < 3 || cordons == 0 {
		t.Errorf("the manager was killed %d times, and cordoned %d times; it wrote\n%s", kills, cordons, strings.Join(writes, "\n"))
	}
}
