package nodemaintenance

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// anAgent says that it keeps a static pod away and that another one runs.
func anAgent(node, pod string) *v1alpha1.NodeAgent {
	return &v1alpha1.NodeAgent{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Status: v1alpha1.NodeAgentStatus{PodName: pod, ManifestDir: "/etc/kubernetes/manifests", StaticPods: []v1alpha1.StaticPod{
			{Namespace: "kube-system", Name: "proxy-" + node, State: v1alpha1.StaticPodHeld},
			{Namespace: "kube-system", Name: "disk-" + node, State: v1alpha1.StaticPodRunning},
		}},
	}
}

func agentPod(name, node string, ready corev1.ConditionStatus) *corev1.Pod {
	pod := aPod(name, node)
	pod.Namespace = ownNamespace
	pod.Labels = map[string]string{v1alpha1.DrainLabel: "skip"}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return pod
}

// within has an agent say in which namespace its pod is.
func within(namespace string, agent *v1alpha1.NodeAgent) *v1alpha1.NodeAgent {
	agent.Status.PodNamespace = namespace
	return agent
}

func agentLeaseOf(node string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "ebbtide-agent-" + node},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, RenewTime: &metav1.MicroTime{Time: renewed}},
	}
}

func heldBy(lease *coordinationv1.Lease, holder string) *coordinationv1.Lease {
	lease.Spec.HolderIdentity = &holder
	return lease
}

// blockersOf are the blockers of node one.
func (w *world) blockersOf(maintenance string) string {
	w.t.Helper()
	var words []string
	for _, node := range w.maintenance(maintenance).Status.NodeStatuses {
		for _, b := range node.Blockers {
			words = append(words, string(b.Type)+": "+b.Message)
		}
	}
	return strings.Join(words, "\n")
}

// What shows that an agent runs is a pod of ours that is ready on its node, or its Lease.
func TestWhetherAnAgentAnswers(t *testing.T) {
	t.Parallel()
	ready := agentPod("agent-1", "one", corev1.ConditionTrue)
	elsewhere := aPod("agent-1", "one")
	elsewhere.Status.Conditions, elsewhere.Labels = ready.Status.Conditions, ready.Labels
	for name, test := range map[string]struct {
		agent *v1alpha1.NodeAgent
		there []corev1.Pod
		lease *coordinationv1.Lease
		want  bool
	}{
		"its pod is ready":                      {anAgent("one", "agent-1"), []corev1.Pod{*ready}, nil, true},
		"its pod is not ready":                  {anAgent("one", "agent-1"), []corev1.Pod{*agentPod("agent-1", "one", corev1.ConditionFalse)}, nil, false},
		"its pod is gone":                       {anAgent("one", "agent-1"), nil, agentLeaseOf("one", noon), false},
		"it names the pod of another node":      {anAgent("one", "agent-2"), []corev1.Pod{*agentPod("agent-2", "two", corev1.ConditionTrue)}, nil, false},
		"it names a pod of another namespace":   {anAgent("one", "agent-1"), []corev1.Pod{*elsewhere}, nil, false},
		"its pod is in the namespace of agents": {within(elsewhere.Namespace, anAgent("one", "agent-1")), []corev1.Pod{*elsewhere}, nil, true},
		"it renews its Lease":                   {anAgent("one", ""), nil, agentLeaseOf("one", noon.Add(50*time.Second)), true},
		"its Lease is old":                      {anAgent("one", ""), nil, agentLeaseOf("one", noon.Add(-time.Minute)), false},
		"its Lease is of another century":       {anAgent("one", ""), nil, agentLeaseOf("one", noon.Add(250*365*24*time.Hour)), false},
		"its Lease is a moment ahead":           {anAgent("one", ""), nil, agentLeaseOf("one", noon.Add(time.Minute+40*time.Second)), true},
		"its Lease is another's":                {anAgent("one", ""), nil, heldBy(agentLeaseOf("one", noon.Add(50*time.Second)), "two"), false},
		"nobody has its Lease":                  {anAgent("one", ""), nil, heldBy(agentLeaseOf("one", noon.Add(50*time.Second)), ""), false},
		"it renews its Lease, and names a pod":  {anAgent("one", "agent-1"), nil, agentLeaseOf("one", noon.Add(50*time.Second)), false},
		"it has neither":                        {anAgent("one", ""), nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), test.agent)
			for i := range test.there {
				w.must(w.api.Create(t.Context(), &test.there[i]))
			}
			if test.lease != nil {
				w.must(w.api.Create(t.Context(), test.lease))
			}
			r := w.manager()
			w.reconcile(r)
			w.clock.Step(time.Minute)
			w.reconcile(r)
			if down := strings.Contains(w.blockersOf("upgrade"), "NodeAgentDown"); down == test.want {
				t.Errorf("it is taken for down: %t; blockers: %s", down, w.blockersOf("upgrade"))
			}
			if d := w.maintenance("upgrade").Status; !strings.Contains(d.Summary, "1 pod left") {
				t.Errorf("the maintenance says %q, want one static pod left in any case", d.Summary)
			}
		})
	}
}

func TestSilentAgentIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), anAgent("one", "agent-1"))
	r := w.manager()
	told := func() int {
		told := 0
		for _, e := range w.api.Events() {
			if strings.HasPrefix(e, v1alpha1.EventNodeAgentDown+" on Node/one: ") {
				told++
			}
		}
		return told
	}
	w.reconcile(r)
	w.clock.Step(59 * time.Second)
	w.reconcile(r)
	if told() != 0 {
		t.Errorf("it is told of after 59 s: %v", w.api.Events())
	}
	for range 3 {
		w.clock.Step(time.Minute)
		w.reconcile(r)
	}
	if told() != 1 {
		t.Errorf("it is told of %d times, want once: %v", told(), w.api.Events())
	}
	w.must(w.api.Create(t.Context(), agentPod("agent-1", "one", corev1.ConditionTrue)))
	w.reconcile(r)
	if blocked := w.blockersOf("upgrade"); strings.Contains(blocked, "NodeAgentDown") {
		t.Errorf("the agent is back and missed all the same: %s", blocked)
	}
	w.must(w.api.Delete(t.Context(), agentPod("agent-1", "one", corev1.ConditionTrue)))
	for range 3 {
		w.clock.Step(time.Minute)
		w.reconcile(r)
	}
	if told() != 2 {
		t.Errorf("it is told of %d times after it was back, want twice", told())
	}
}

func TestEventsOfUnawaitedAgentsAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), inPool("two", "new"))
	r := w.manager()
	w.reconcile(r)
	idle := anAgent("two", "agent-2")
	idle.Status.StaticPods = idle.Status.StaticPods[1:]
	if _, concerned := r.agentMatters(nil, idle); len(concerned) > 0 {
		t.Errorf("the agent of a node without maintenance asks for %v", concerned)
	}
	if _, concerned := r.agentMatters(nil, anAgent("two", "agent-2")); len(concerned) != 1 {
		t.Errorf("an agent that keeps a pod away asks for %v, want its node", concerned)
	}
	was, now := anAgent("one", "agent-1"), anAgent("one", "agent-1")
	now.Status.Shutdown = &v1alpha1.NodeShutdown{Phase: v1alpha1.ShutdownScheduled}
	if _, concerned := r.agentMatters(was, now); len(concerned) > 0 {
		t.Errorf("a shutdown, which no decision here reads, asks for %v", concerned)
	}
	now.Status.StaticPods[1].State = v1alpha1.StaticPodHolding
	if _, concerned := r.agentMatters(was, now); len(concerned) != 1 {
		t.Errorf("a pod that is taken down asks for %v, want its node", concerned)
	}
}
