package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// shuts has the agent of a node say something of its shutdown.
func (w *world) shuts(node string, phase v1alpha1.NodeShutdownPhase, mode v1alpha1.NodeShutdownMode) {
	w.t.Helper()
	agent := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(agent), agent); err != nil {
		w.create(agent)
		w.t.Cleanup(func() { w.must("delete the agent", w.client.Delete(w.ctx, agent)) })
	}
	n, now := &corev1.Node{}, metav1.Now()
	w.get(n, node)
	agent.Status.BootID = n.Status.NodeInfo.BootID
	agent.Status.Shutdown = &v1alpha1.NodeShutdown{
		Phase: phase, Mode: mode, Type: "reboot", StartTime: &now, DeadlineTime: &metav1.Time{Time: now.Add(time.Minute)}, DelaySeconds: 60,
	}
	w.must("say it", w.client.Status().Update(w.ctx, agent))
}

// A node shuts down: it is cordoned, its pods leave, and when it does not shut down after
// all it is given back.
func TestANodeThatShutsDownIsDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.pods(node, pod{name: "web"})
	name := "node-shutdown-" + node
	w.shuts(node, v1alpha1.ShutdownNone, v1alpha1.ShutdownModeDrain)
	begin := time.Now()

	w.shuts(node, v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain)

	w.awaitNode(node, "cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable })
	t.Logf("cordoned %s after its agent said that it shuts down", time.Since(begin).Round(time.Millisecond))
	w.awaitGone("web")
	m := &v1alpha1.NodeMaintenance{}
	await(w, "drained", m, name, func(m *v1alpha1.NodeMaintenance) bool {
		return apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	})
	if want := "Node " + node + " is shutting down (reboot)"; m.Spec.Reason != want || len(m.Spec.DrainPlan) != 12 {
		t.Errorf("its reason is %q with a plan of %d entries, want %q with 12", m.Spec.Reason, len(m.Spec.DrainPlan), want)
	}
	w.shuts(node, v1alpha1.ShutdownReleased, v1alpha1.ShutdownModeDrain)
	w.shuts(node, v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain)
	w.awaitNode(node, "given back", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	w.awaitAbsent(&v1alpha1.NodeMaintenance{}, name)

	// The name is free for the next one.
	w.shuts(node, v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain)
	w.awaitNode(node, "cordoned again", func(n *corev1.Node) bool { return n.Spec.Unschedulable })
	w.shuts(node, v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain)
	w.awaitAbsent(&v1alpha1.NodeMaintenance{}, name)
}

// Where the kubelet stops all pods itself, nobody is evicted. After the boot the node is
// given back by what it says itself, whether its agent is back or not.
func TestANodeWhoseKubeletStopsItsPodsIsCordoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.pods(node, pod{name: "web"})
	w.shuts(node, v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeReport)
	w.awaitNode(node, "cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable })
	p := &corev1.Pod{}
	w.get(p, "web")
	if p.DeletionTimestamp != nil || len(w.evacuations()) > 0 {
		t.Errorf("pod web is asked to leave: %v, %d evacuations", p.DeletionTimestamp, len(w.evacuations()))
	}

	w.must("boot", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n := &corev1.Node{}
		w.get(n, node)
		n.Status.NodeInfo.BootID = "boot-2"
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == corev1.NodeReady {
				n.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-29 * time.Second))
			}
		}
		return w.client.Status().Update(w.ctx, n)
	}))

	w.awaitNode(node, "given back", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	w.awaitAbsent(&v1alpha1.NodeMaintenance{}, "node-shutdown-"+node)
}

// The reboot that somebody drained a node for is no other maintenance.
func TestTheRebootOfADrainedNodeIsThatOfItsMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.maintain("kernel-update", v1alpha1.StageDrain, []string{node})
	w.awaitDrained("kernel-update")

	w.shuts(node, v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain)

	w.awaitEvent(node, v1alpha1.EventNodeShutdownDetected)
	w.awaitAbsent(&v1alpha1.NodeMaintenance{}, "node-shutdown-"+node)
}
