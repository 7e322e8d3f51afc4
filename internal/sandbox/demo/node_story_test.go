package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// booted is the node of a boot, whose kubelet answers or not.
func booted(boot string, unschedulable, ready bool) *corev1.Node {
	n := node(unschedulable)
	n.Status.NodeInfo.BootID = boot
	if ready {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	return n
}

// told returns a report of the agent about the static pod.
func told(state v1alpha1.StaticPodState, message string) *v1alpha1.NodeAgent {
	return &v1alpha1.NodeAgent{Status: v1alpha1.NodeAgentStatus{StaticPods: []v1alpha1.StaticPod{
		{Name: "edge-node-1", Manifest: "edge.yaml", State: state, Message: message},
	}}}
}

func mirror() *corev1.Pod {
	p := pod("edge-node-1", 0, true)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Controller: new(true)}}
	return p
}

func ended(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodSucceeded
	return p
}

func serving(p *corev1.Pod) *corev1.Pod {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

var anOutage = []moment{
	{0, watch.Added, booted("a", false, true)},
	{0, watch.Added, serving(agent("agent-1", false))},
	{0, watch.Added, told(v1alpha1.StaticPodRunning, "")},
	{100 * time.Millisecond, watch.Modified, booted("a", true, true)},
	{200 * time.Millisecond, watch.Modified, agent("agent-1", true)},
	{900 * time.Millisecond, watch.Modified, ended(agent("agent-1", true))},
	{1000 * time.Millisecond, watch.Modified, told(v1alpha1.StaticPodHolding, "it terminates")},
	{1100 * time.Millisecond, watch.Deleted, agent("agent-1", true)},
	{1200 * time.Millisecond, watch.Deleted, mirror()},
	{1300 * time.Millisecond, watch.Modified, told(v1alpha1.StaticPodHeld, "it is aside.")},
	{1300 * time.Millisecond, watch.Modified, told(v1alpha1.StaticPodHeld, "it is aside.")},
	{1400 * time.Millisecond, watch.Modified, drained()},
	{1500 * time.Millisecond, watch.Modified, booted("a", true, true)},
	{4000 * time.Millisecond, watch.Modified, booted("b", true, false)},
	{5000 * time.Millisecond, watch.Modified, booted("b", true, true)},
	{6000 * time.Millisecond, watch.Modified, booted("b", false, true)},
	{6100 * time.Millisecond, watch.Modified, told(v1alpha1.StaticPodRestoring, "it is back.")},
	{6200 * time.Millisecond, watch.Added, agent("agent-2", false)},
	{6300 * time.Millisecond, watch.Modified, told(v1alpha1.StaticPodRunning, "")},
	{7000 * time.Millisecond, watch.Modified, serving(agent("agent-2", false))},
}

const wantOutage = `   0.1s  cordoned  node-1
   0.2s  deleted   agent-1
   0.9s  ended     agent-1, 0.7s after its deletion
   1.0s  renamed   edge-node-1: edge.yaml is renamed to .edge.yaml.ebbtide-held, so the kubelet ends the pod
   1.3s  held      edge-node-1: it is aside.
   1.4s  drained   node-1
   5.0s  boots     node-1 has rebooted, and edge-node-1 is Held
   6.0s  back      node-1 is schedulable again
   6.1s  restored  edge-node-1: it is back.
   6.3s  runs      edge-node-1
   7.0s  returns   agent-2

edge-node-1 was down for 5.0s, during a reboot of its node.
`

func TestTheStoryOfANodeIsOverWhenAllIsBack(t *testing.T) {
	var out strings.Builder
	s := newOutage("node-1", printer(&out))
	for _, m := range anOutage {
		if s.isDrained() && m.at < 1400*time.Millisecond || s.hasBooted() && m.at < 5*time.Second || s.isBack() {
			t.Errorf("before %s: drained %t, booted %t, back %t", m.at, s.isDrained(), s.hasBooted(), s.isBack())
		}
		if err := s.see(m.at, watch.Event{Type: m.change, Object: m.object}); err != nil {
			t.Fatal(err)
		}
	}
	if !s.isBack() {
		t.Error("all is back, and the story goes on")
	}
	s.printSummary(&out)
	if diff := cmp.Diff(wantOutage, out.String()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	if err := s.see(0, watch.Event{Type: watch.Error}); err == nil || !strings.Contains(err.Error(), "a watch ended early") {
		t.Errorf("error is %v, want that a watch ended early", err)
	}
}
