package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// shuts has the agent of a node say something of its shutdown, which has a minute.
func (w *world) shuts(node string, phase v1alpha1.NodeShutdownPhase, mode v1alpha1.NodeShutdownMode) {
	w.t.Helper()
	w.goesDown(node, time.Minute, v1alpha1.NodeShutdown{Phase: phase, Mode: mode, DelaySeconds: 60})
}

// goesDown has the agent of a node say that it goes down at a time from now, which it
// returns as the API has it.
func (w *world) goesDown(node string, ahead time.Duration, says v1alpha1.NodeShutdown) *metav1.Time {
	w.t.Helper()
	agent := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(agent), agent); err != nil {
		w.create(agent)
		w.t.Cleanup(func() { w.must("delete the agent", w.client.Delete(w.ctx, agent)) })
	}
	n, now := &corev1.Node{}, metav1.Now()
	w.get(n, node)
	agent.Status.BootID = n.Status.NodeInfo.BootID
	says.Type, says.StartTime, says.DeadlineTime = "reboot", &now, &metav1.Time{Time: now.Add(ahead)}
	agent.Status.Shutdown = &says
	w.must("say it", w.client.Status().Update(w.ctx, agent))
	return agent.Status.Shutdown.DeadlineTime
}

// A shutdown was scheduled, and begins much sooner. What is left shortly before the node goes
// down is deleted in its order, with the time that is left; when the node does not go down
// after all, what was not deleted stays.
func TestPodsLeftOnANodeThatShutsDownAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	name := "node-shutdown-" + node
	batch := w.podOn(node, pod{name: "batch", priority: 100, held: true})
	batch.Spec.TerminationGracePeriodSeconds = new(int64(60))
	w.createPod(batch)
	w.createBudget("batch", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
	w.pods(node, pod{name: "web"}, pod{name: "db", priority: 5000, neverEvicted: true})
	grace := make(chan int64, 1)
	stop := w.watchPods(func(_ watch.EventType, p *corev1.Pod) {
		if p.Name == "batch" && p.DeletionGracePeriodSeconds != nil {
			select {
			case grace <- *p.DeletionGracePeriodSeconds:
			default: // Later ones are those of the simulated kubelet.
			}
		}
	})
	until := func(said *metav1.Time) func(*v1alpha1.NodeMaintenance) bool {
		return func(m *v1alpha1.NodeMaintenance) bool {
			d := m.Spec.Deadline
			return d != nil && d.OnDeadline == v1alpha1.DeadlineDelete && d.Time.Equal(said)
		}
	}

	said := w.goesDown(node, 10*time.Minute, v1alpha1.NodeShutdown{Phase: v1alpha1.ShutdownScheduled, Mode: v1alpha1.ShutdownModeDrain})
	m := &v1alpha1.NodeMaintenance{}
	await(w, "with the time of its shutdown as deadline", m, name, until(said))
	if m.Spec.Deadline.DeleteBeforeSeconds != 180 {
		t.Errorf("deletes %d s before, want 180, which is 30 %% of 10 minutes", m.Spec.Deadline.DeleteBeforeSeconds)
	}
	w.awaitGone("web")
	w.awaitPod("batch", "running", undeleted)

	said = w.goesDown(node, 33*time.Second, v1alpha1.NodeShutdown{Phase: v1alpha1.ShutdownPreparing, Mode: v1alpha1.ShutdownModeDrain, DelaySeconds: 100})
	await(w, "with the end of the delay as deadline", m, name, until(said))
	w.awaitPod("batch", "terminating", terminating)
	w.awaitPod("db", "running until it is its turn", undeleted)
	w.shuts(node, v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain)
	w.awaitNode(node, "given back", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	w.awaitAbsent(&v1alpha1.NodeMaintenance{}, name)

	stop()
	if got := <-grace; got < 15 || got > 28 {
		t.Errorf("batch was deleted with %d s, want what was left of 30 s but for 2", got)
	}
	w.awaitWarning("Pod", "batch", v1alpha1.EventPastDeadline, "NodeMaintenance "+name+" wants node "+node+" to be empty by ")
	w.awaitPod("db", "running after all", undeleted)
	if want := "Node " + node + " is shutting down (reboot)"; m.Spec.Reason != want {
		t.Errorf("its reason is %q, want %q", m.Spec.Reason, want)
	}
}

// undeleted is true of a pod that nobody has deleted.
func undeleted(p *corev1.Pod) bool { return p.DeletionTimestamp == nil }
