package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Of two nodes whose drains never end, the first stops nothing, and the second stops the rollout.
func TestRolloutStopsAtMaxFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("a", "b", "c", "d")
	w.pods(nodes[0], pod{name: "db-a", neverEvicted: true})
	w.pods(nodes[2], pod{name: "db-c", neverEvicted: true})
	spec := draining(nodes, 1)
	spec.Failure = v1alpha1.RolloutFailure{DrainTimeoutSeconds: new(int32(10)), RetryCount: new(int32(0)), MaxFailures: new(intstr.FromInt(2))}
	w.rollOut("empty", spec)

	w.awaitWaiting("empty", map[string]string{nodes[3]: v1alpha1.RolloutWaitsForFailures})
	w.awaitRollout("empty", "two failed, one done", func(s *v1alpha1.NodeRolloutStatus) bool {
		degraded := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRolloutDegraded)
		return s.DoneCount == 1 && s.FailedCount == 2 && degraded != nil && degraded.Reason == v1alpha1.RolloutWaitsForFailures
	})
	w.assertStaysCordoned(nodes[1])
	for _, node := range []string{nodes[0], nodes[2], nodes[3]} {
		w.assertUnschedulable(node, false)
	}
	w.assertStarted("empty", nodes[:3]...)
}

// A node that is dead takes the place of one that may be unavailable, and is not started. Once a user
// has skipped it, the others are upgraded.
func TestRolloutWaitsForADeadNodeUntilItIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("dead", "one", "two")
	work := w.work(nodes)
	w.goDown(nodes[0])
	w.rollOut("kubelet", upgrading(nodes, 1))

	w.awaitWaiting("kubelet", map[string]string{
		nodes[0]: v1alpha1.RolloutWaitsForReady, nodes[1]: v1alpha1.RolloutWaitsForUnavailable, nodes[2]: v1alpha1.RolloutWaitsForUnavailable,
	})
	w.changeRollout("kubelet", func(spec *v1alpha1.NodeRolloutSpec) {
		spec.Nodes = []v1alpha1.RolloutNodeSpec{{Name: nodes[0], Skip: true}}
	})
	w.awaitRolloutComplete("kubelet", v1alpha1.ReasonRolloutComplete)
	work.assertAtMost(1)
	w.assertStarted("kubelet", nodes[1:]...)
}

// A node that goes down for its work and does not come back has failed. It stays drained, and holds
// up no other node. When it is back, it is done.
func TestRolloutGoesOnWithoutANodeThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("lost", "other")
	for _, node := range nodes {
		w.reports(node, oldKubelet)
	}
	spec := upgrading(nodes, 1)
	spec.Failure = v1alpha1.RolloutFailure{WorkTimeoutSeconds: new(int32(5)), MaxFailures: new(intstr.FromInt(2))}
	w.rollOut("kubelet", spec)
	w.awaitWorking("kubelet", map[string]string{nodes[0]: v1alpha1.RolloutNodeDrained})
	w.goDown(nodes[0])

	w.awaitRollout("kubelet", "lost has failed, and other is drained", func(s *v1alpha1.NodeRolloutStatus) bool {
		return len(s.Failed) == 1 && s.Failed[0].Name == nodes[0] && s.Failed[0].Reason == v1alpha1.RolloutNodeWorkTimedOut &&
			slices.ContainsFunc(s.Working, func(n v1alpha1.RolloutNode) bool {
				return n.Name == nodes[1] && n.Reason == v1alpha1.RolloutNodeDrained
			})
	})
	w.reports(nodes[1], newKubelet)
	w.awaitRolloutComplete("kubelet", v1alpha1.ReasonRolloutNodesFailed)
	w.assertStaysCordoned(nodes[0])
	w.boot(nodes[0])
	w.reports(nodes[0], newKubelet)
	w.awaitNode(nodes[0], "in service", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	w.awaitRollout("kubelet", "both are done", func(s *v1alpha1.NodeRolloutStatus) bool { return s.DoneCount == 2 && s.FailedCount == 0 })
	w.assertStarted("kubelet", nodes...)
}

// Another selector takes no node back that has started, and starts those that it selects now.
func TestRolloutFinishesANodeThatIsNoLongerSelected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("a", "b", "c")
	for _, node := range nodes {
		w.reports(node, oldKubelet)
	}
	w.rollOut("kubelet", upgrading(nodes[:2], 1))
	w.awaitWorking("kubelet", map[string]string{nodes[0]: v1alpha1.RolloutNodeDrained})
	w.changeRollout("kubelet", func(spec *v1alpha1.NodeRolloutSpec) { spec.NodeSelector = upgrading(nodes[2:], 1).NodeSelector })

	w.awaitWaiting("kubelet", map[string]string{nodes[2]: v1alpha1.RolloutWaitsForUnavailable})
	w.assertStaysCordoned(nodes[0])
	for _, node := range []string{nodes[0], nodes[2]} {
		w.awaitWorking("kubelet", map[string]string{node: v1alpha1.RolloutNodeDrained})
		w.reports(node, newKubelet)
	}
	w.awaitRolloutComplete("kubelet", v1alpha1.ReasonRolloutComplete)
	w.assertUnschedulable(nodes[0], false)
	w.assertStarted("kubelet", nodes[0], nodes[2])
}

// A node whose sentinel never goes away is rebooted once, and has failed until it goes.
func TestRolloutRebootsANodeOnceWhoseSentinelStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.reports(node, newKubelet)
	w.requiresReboot(node, corev1.ConditionTrue)
	spec := upgrading([]string{node}, 1)
	spec.Mode, spec.Reboot, spec.When = v1alpha1.RolloutContinuous, true, &v1alpha1.RolloutWhen{RebootRequired: true}
	w.rollOut("reboot", spec)

	w.awaitNode(node, "handed over", func(n *corev1.Node) bool { return n.Labels[v1alpha1.HandedOverLabel] != "" })
	w.goDown(node)
	w.boot(node)
	w.requiresReboot(node, corev1.ConditionTrue)
	w.awaitRollout("reboot", "failed", func(s *v1alpha1.NodeRolloutStatus) bool {
		return len(s.Failed) == 1 && s.Failed[0].Reason == v1alpha1.RolloutNodeStillNeeded && s.Failed[0].AttemptCount == 1
	})
	w.assertUnschedulable(node, false)
	w.requiresReboot(node, corev1.ConditionFalse)
	w.awaitRollout("reboot", "idle", func(s *v1alpha1.NodeRolloutStatus) bool {
		complete := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRolloutComplete)
		return s.FailedCount == 0 && s.DoneCount == 1 && complete != nil && complete.Reason == v1alpha1.ReasonRolloutIdle
	})
	w.assertStarted("reboot", node)
}

// requiresReboot has the agent of a node report whether a reboot is required.
func (w *world) requiresReboot(node string, status corev1.ConditionStatus) {
	w.t.Helper()
	n := &corev1.Node{}
	w.get(n, node)
	next := corev1.NodeCondition{
		// Agents report seconds, as all nodes do: this one is later than all that was before.
		Type: v1alpha1.NodeRebootRequired, Status: status, LastHeartbeatTime: metav1.NewTime(time.Now().Add(time.Second)),
		LastTransitionTime: metav1.Now(), Reason: v1alpha1.ReasonRebootSentinel, Message: "A reboot is required.",
	}
	for _, c := range n.Status.Conditions {
		if c.Type == next.Type && c.Status == status {
			next.LastTransitionTime = c.LastTransitionTime
		}
	}
	patch := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{next}}}
	w.must("report that a reboot is required", w.client.Status().Patch(w.ctx, patch, client.StrategicMergeFrom(&corev1.Node{ObjectMeta: patch.ObjectMeta})))
}

// A drain that does not end before its window does is given back then. It is no failure, and waits
// for the next window, as does the node that has not started.
func TestLongRolloutGivesBackAtTheEndOfTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "db", neverEvicted: true})
	spec := draining(nodes, 1)
	// Nodes start in the first half of a window.
	begin := time.Now().UTC().Add(30 * time.Second).Truncate(time.Minute)
	end := begin.Add(2 * time.Minute)
	spec.Windows = []v1alpha1.MaintenanceWindow{{From: begin.Format("15:04"), To: end.Format("15:04")}}
	w.rollOut("night", spec)

	w.awaitWorking("night", map[string]string{nodes[0]: v1alpha1.RolloutNodeDraining})
	if all := w.maintenancesOf("night"); len(all) != 1 || all[0].Spec.Deadline == nil || !all[0].Spec.Deadline.Time.Time.Equal(end) {
		t.Errorf("%+v, want a deadline at %s, which is the end of the window", all, end)
	}
	w.awaitWaiting("night", map[string]string{nodes[0]: v1alpha1.RolloutWaitsForWindow, nodes[1]: v1alpha1.RolloutWaitsForWindow})
	w.assertUnschedulable(nodes[0], false)
	w.awaitRollout("night", "none failed", func(s *v1alpha1.NodeRolloutStatus) bool { return s.WaitingCount == 2 && s.FailedCount == 0 })
	w.assertStarted("night", nodes[0])
	if now := time.Now(); now.Before(end) {
		t.Errorf("given back at %s, before the end of the window at %s", now, end)
	}
}

// awaitWaiting waits until exactly these nodes wait, each for a reason.
func (w *world) awaitWaiting(name string, reasons map[string]string) {
	w.t.Helper()
	w.awaitRollout(name, fmt.Sprint("waiting ", reasons), func(s *v1alpha1.NodeRolloutStatus) bool {
		found := 0
		for _, group := range s.Waiting {
			for _, node := range group.Nodes {
				if reasons[node.Name] == group.Reason {
					found++
				}
			}
		}
		return found == len(reasons) && int(s.WaitingCount) == found
	})
}

// assertStarted wants a rollout to have started each of these nodes once, and no other.
func (w *world) assertStarted(rollout string, nodes ...string) {
	w.t.Helper()
	var got []string
	for _, m := range w.maintenancesOf(rollout) {
		for _, term := range m.Spec.NodeSelector.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				got = append(got, field.Values...)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, nodes) {
		w.t.Errorf("NodeRollout %s started %s, want each of %s once", rollout, strings.Join(got, ", "), strings.Join(nodes, ", "))
	}
}
