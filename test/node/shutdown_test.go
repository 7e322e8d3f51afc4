package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/patience"
)

// Nodes with kubelets shut down. systemd-logind is played on a real D-Bus, which is where a
// node has it; the agent and the kubelet find it there.
func TestLongNodesThatShutDown(t *testing.T) {
	s := newShutdowns(t)
	play(t, s, []story[shutdowns]{
		{"a shutdown is cancelled while a budget lets no pod go", (*shutdowns).cancelled},
		{"a shutdown that is scheduled is called off", (*shutdowns).scheduled},
		{"the agent is killed while the node shuts down", (*shutdowns).killed},
		{"what a budget keeps is deleted in time, the node shuts down and boots", (*shutdowns).reboots},
		{"a rollout reboots the node that requires it", (*shutdowns).required},
		{"the kubelet has a graceful shutdown of its own", (*shutdowns).besideKubelet},
	})
}

// cancelled has a shutdown begin that somebody thinks better of.
func (s *shutdowns) cancelled(t *testing.T) {
	s.budget(t, 0)
	begin := time.Now()
	s.logind.Prepare(t, true, "reboot")
	s.awaitNode(t, "to be cordoned", func(node *corev1.Node) bool { return node.Spec.Unschedulable })
	t.Logf("cordoned %s after the signal", time.Since(begin).Round(time.Millisecond))
	s.condition(t, corev1.ConditionTrue, v1alpha1.ReasonNodeShutdown)
	m := s.awaitMaintenance(t, "to wait for a budget", func(m *v1alpha1.NodeMaintenance) bool {
		return len(m.Status.NodeStatuses) == 1 && len(m.Status.NodeStatuses[0].Blockers) > 0
	})
	blocker := m.Status.NodeStatuses[0].Blockers[0]
	if want := "Node " + s.node + " is shutting down (reboot)"; m.Spec.Reason != want || blocker.Type != v1alpha1.BlockerPDBUnsatisfiable {
		t.Errorf("it says %q and waits for %+v, want %q and a budget", m.Spec.Reason, blocker, want)
	}
	s.tells(t, v1alpha1.ShutdownPreparing, v1alpha1.ReasonShutdownWaits)
	if s.logind.Held("ebbtide") != 1 {
		t.Error("nobody holds the shutdown up")
	}
	s.logind.Prepare(t, false, "reboot")
	s.back(t)
	s.condition(t, corev1.ConditionFalse, v1alpha1.ReasonNodeShutdownCancelled)
	s.tells(t, v1alpha1.ShutdownCancelled, v1alpha1.ReasonShutdownWaits)
	s.logind.AwaitHeld(t, "ebbtide", 1)
	if waitAvailable(t, s.Cluster, s.namespace, "held"); s.pod(t).Name == "" {
		t.Errorf("the pod has left %s, which its budget does not allow", s.node)
	}
}

// scheduled is a shutdown with a time. It holds nobody up.
func (s *shutdowns) scheduled(t *testing.T) {
	file := s.path("run/systemd/shutdown/scheduled")
	at := time.Now().Add(15 * time.Minute)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "USEC=%d\nWARN_WALL=1\nMODE=poweroff\n", at.UnixMicro()), 0o644); err != nil {
		t.Fatal(err)
	}
	m := s.awaitMaintenance(t, "to be there", func(*v1alpha1.NodeMaintenance) bool { return true })
	if want := "Node " + s.node + " will shut down at " + at.UTC().Format(time.RFC3339) + " (power-off)"; m.Spec.Reason != want {
		t.Errorf("it says %q, want %q", m.Spec.Reason, want)
	}
	s.tells(t, v1alpha1.ShutdownScheduled, v1alpha1.ReasonShutdownWaits)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.back(t)
	s.tells(t, v1alpha1.ShutdownCancelled, v1alpha1.ReasonShutdownWaits)
}

// killed loses the inhibitor with the agent, and so the shutdown: whoever comes next finds
// that it goes on, and does not hold up what logind does not let it hold up.
func (s *shutdowns) killed(t *testing.T) {
	s.logind.Prepare(t, true, "reboot")
	s.tells(t, v1alpha1.ShutdownPreparing, v1alpha1.ReasonShutdownWaits)
	s.agent.Kill()
	s.logind.AwaitHeld(t, "ebbtide", 0)
	s.startAgent(t)
	// This logind gives an inhibitor also now, so the new agent goes on where the old one was.
	s.logind.AwaitHeld(t, "ebbtide", 1)
	s.tells(t, v1alpha1.ShutdownPreparing, v1alpha1.ReasonShutdownWaits)
	s.logind.Prepare(t, false, "reboot")
	s.back(t)
}

// reboots goes the whole way, with a power cut in the place of the shutdown. Of the 40 s of
// the delay the last 30 % are for what has not left by then.
func (s *shutdowns) reboots(t *testing.T) {
	s.budget(t, 0)
	before, err := getNode(t.Context(), s.Cluster, s.node)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.logind.Prepare(t, true, "reboot")
	s.awaitMaintenance(t, "to be Drained", func(m *v1alpha1.NodeMaintenance) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	})
	drained := time.Now()
	if took := drained.Sub(begin); took < 27*time.Second {
		t.Errorf("drained after %s, want the budget kept for 28 s", took)
	}
	s.logind.AwaitHeld(t, "ebbtide", 0)
	t.Logf("released %s after Drained was seen", time.Since(drained).Round(time.Millisecond))
	s.tells(t, v1alpha1.ShutdownReleased, v1alpha1.ReasonShutdownWaits)
	s.event(t, v1alpha1.EventNodeShutdownReleased, "the node is drained")
	waitAvailable(t, s.Cluster, s.namespace, "held")

	s.agent.Kill()
	s.PowerOff(t, s.node)
	s.PowerOn(t, s.node)
	waitReady(t, s.Cluster, s.node, before.Status.NodeInfo.BootID)
	if node, err := getNode(t.Context(), s.Cluster, s.node); err != nil || !node.Spec.Unschedulable {
		t.Errorf("node %s takes pods as soon as it is Ready: %+v, %v", s.node, node.Spec, err)
	}
	s.boot(t)
	booted := time.Now()
	s.back(t)
	t.Logf("given back %s after the boot", time.Since(booted).Round(time.Second))
	s.condition(t, corev1.ConditionFalse, v1alpha1.ReasonNodeReady)
	s.tells(t, v1alpha1.ShutdownNone, v1alpha1.ReasonShutdownWaits)
}

// besideKubelet has the kubelet stop all pods by itself, which the agent cannot prevent and
// does not deny.
func (s *shutdowns) besideKubelet(t *testing.T) {
	s.serve(t)
	file := s.path("etc/kubernetes/kubelet.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own := string(config) + "shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 10s\n"
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	restartKubelet(t, s.Cluster, s.node)
	s.logind.AwaitHeld(t, "kubelet", 1)
	// It begins to listen after that, says nothing when it does, and does not ask what it has
	// missed (kubernetes/kubernetes#122674).
	time.Sleep(2 * time.Second)
	s.logind.Prepare(t, true, "poweroff")
	s.tells(t, v1alpha1.ShutdownPreparing, v1alpha1.ReasonKubeletShutdown)
	s.awaitNode(t, "to be cordoned", func(node *corev1.Node) bool { return node.Spec.Unschedulable })
	patience.Eventually(t, "the kubelet to stop the pod", func(context.Context) (string, bool) {
		pod := s.pod(t)
		return fmt.Sprintf("%+v", pod.Status), pod.Name == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	})
	if s.logind.Held("ebbtide") != 0 {
		t.Error("the agent holds up a shutdown in which it has nothing to do")
	}
	s.logind.Prepare(t, false, "poweroff")
	s.back(t)
}

// condition waits until the Node says this of its shutdown.
func (s *shutdowns) condition(t *testing.T, status corev1.ConditionStatus, reason string) {
	t.Helper()
	s.awaitNode(t, fmt.Sprintf("to say %s/%s", status, reason), func(node *corev1.Node) bool {
		for _, one := range node.Status.Conditions {
			if one.Type == v1alpha1.NodeGracefulShutdown {
				return one.Status == status && one.Reason == reason
			}
		}
		return false
	})
}

func (s *shutdowns) awaitNode(t *testing.T, what string, so func(*corev1.Node) bool) {
	t.Helper()
	patience.Eventually(t, "node "+s.node+" "+what, func(ctx context.Context) (string, bool) {
		node, err := getNode(ctx, s.Cluster, s.node)
		return fmt.Sprintf("%+v %+v %v", node.Spec, node.Status.Conditions, err), err == nil && so(node)
	})
}

func (s *shutdowns) awaitMaintenance(t *testing.T, what string, so func(*v1alpha1.NodeMaintenance) bool) (m *v1alpha1.NodeMaintenance) {
	t.Helper()
	name := "node-shutdown-" + s.node
	patience.Eventually(t, "NodeMaintenance "+name+" "+what, func(ctx context.Context) (string, bool) {
		m = &v1alpha1.NodeMaintenance{}
		err := s.Client.Get(ctx, client.ObjectKey{Name: name}, m)
		return fmt.Sprintf("%+v %+v %v", m.Spec, m.Status, err), err == nil && so(m)
	})
	return m
}

// back waits until the node takes pods again and nothing is left of its maintenance.
func (s *shutdowns) back(t *testing.T) {
	t.Helper()
	patience.Eventually(t, "the maintenance to be over", func(ctx context.Context) (string, bool) {
		err := s.Client.Get(ctx, client.ObjectKey{Name: "node-shutdown-" + s.node}, &v1alpha1.NodeMaintenance{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	s.awaitNode(t, "to take pods again", func(node *corev1.Node) bool { return !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 })
}

// tells waits until the agent says so.
func (s *shutdowns) tells(t *testing.T, phase v1alpha1.NodeShutdownPhase, manageable string) {
	t.Helper()
	patience.Eventually(t, fmt.Sprintf("the agent to say %s, %s", phase, manageable), func(ctx context.Context) (string, bool) {
		agent := &v1alpha1.NodeAgent{}
		err := s.Client.Get(ctx, client.ObjectKey{Name: s.node}, agent)
		condition := meta.FindStatusCondition(agent.Status.Conditions, v1alpha1.ConditionShutdownManageable)
		return fmt.Sprintf("%+v %+v %v", agent.Status.Shutdown, condition, err),
			agent.Status.Shutdown != nil && agent.Status.Shutdown.Phase == phase && condition != nil && condition.Reason == manageable
	})
}

// event waits for one of the Node with these words.
func (s *shutdowns) event(t *testing.T, reason, words string) {
	t.Helper()
	patience.Eventually(t, "event "+reason, func(ctx context.Context) (string, bool) {
		events := &corev1.EventList{}
		err := s.Client.List(ctx, events, client.MatchingFields{"reason": reason, "involvedObject.name": s.node})
		for i := range events.Items {
			if strings.Contains(events.Items[i].Message, words) {
				return "", true
			}
		}
		return fmt.Sprintf("%+v %v", events.Items, err), false
	})
}

// budget replaces that of the application.
func (s *shutdowns) budget(t *testing.T, unavailable int) {
	t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "held"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt(unavailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}},
	}}
	if err := client.IgnoreNotFound(s.Client.Delete(t.Context(), b.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}
