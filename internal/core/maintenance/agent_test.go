package maintenance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// agents is a world in which node one runs a static pod, whose agent says what it says.
type agents struct {
	*world
	said v1alpha1.NodeAgent
	m    *v1alpha1.NodeMaintenance
}

func newAgents(t *testing.T) *agents {
	a := &agents{world: newWorld(t, "one")}
	a.runners.DaemonSets = true
	a.said.Status.ManifestDir = "/etc/kubernetes/manifests"
	a.m = a.maintenance("kernel-update", drain, nil, "one")
	a.readySince(dawn)
	a.answer()
	return a
}

func (a *agents) readySince(at time.Time) {
	a.find("one").Status.Conditions = append(a.find("one").Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at),
	})
}

// says has the agent say something of a static pod.
func (a *agents) says(name string, state v1alpha1.StaticPodState, priority int32) *v1alpha1.StaticPod {
	pods := &a.said.Status.StaticPods
	*pods = slices.DeleteFunc(*pods, func(p v1alpha1.StaticPod) bool { return p.Name == name })
	*pods = append(*pods, v1alpha1.StaticPod{Namespace: "default", Name: name, State: state, Priority: priority})
	a.answer()
	return &(*pods)[len(*pods)-1]
}

func (a *agents) answer() {
	a.runners.Agents = map[string]maintenance.Agent{"one": maintenance.AgentOf(&a.said)}
}

func (a *agents) silentSince(at time.Time) {
	agent := maintenance.AgentOf(&a.said)
	agent.SilentSince = at
	a.runners.Agents["one"] = agent
}

// settle has three passes and returns the last one.
func (a *agents) settle() maintenance.Decision {
	a.pass()
	a.pass()
	return a.pass()
}

// counts is pending+evacuating/retained, and whether the maintenance is drained.
func (a *agents) counts() string {
	s := a.m.Status.NodeStatuses[0]
	return fmt.Sprintf("%d+%d/%d %t", s.PodsPendingEvacuation, s.PodsEvacuating, s.PodsRetained, isTrue(a.m.Status.Conditions, v1alpha1.ConditionDrained))
}

func (a *agents) expect(what, want string) maintenance.Decision {
	a.t.Helper()
	d := a.settle()
	if got := a.counts(); got != want {
		a.t.Errorf("%s: pending+evacuating/retained and Drained are %s, want %s", what, got, want)
	}
	return d
}

// mirror runs a static pod of a priority and has the agent say that it runs.
func (a *agents) mirror(priority int32) *corev1.Pod {
	pod := a.run("one", 1, priority, static, ofNode)[0]
	a.says(pod.Name, v1alpha1.StaticPodRunning, priority)
	return pod
}

// ofNode is how a kubelet owns a mirror pod.
func ofNode(pod *corev1.Pod) {
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "one", UID: "one", Controller: &controller}}
}

func (a *agents) blockers() string {
	var all []string
	for _, b := range a.m.Status.NodeStatuses[0].Blockers {
		all = append(all, fmt.Sprintf("%s %s/%s %d", b.Type, b.Object.Kind, b.Object.Name, b.PodCount))
	}
	return strings.Join(all, ", ")
}

func TestStaticPodIsGoneByTheReportOfItsAgent(t *testing.T) {
	a := newAgents(t)
	pod := a.mirror(0)
	a.expect("it runs", "0+1/0 false")
	a.says(pod.Name, v1alpha1.StaticPodHolding, 0).Message = "waits for its 30s"
	a.expect("its manifest is aside", "0+1/0 false")
	a.remove(pod.UID)
	a.expect("its mirror pod is gone, the agent has not seen it", "1+0/0 false")
	if got := a.blockers(); got != "EvacuatorRunning NodeAgent/one 1" {
		t.Errorf("blockers are %s", got)
	}
	a.says(pod.Name, v1alpha1.StaticPodHeld, 0)
	a.expect("it is held", "0+0/0 true")
	a.silentSince(a.now)
	a.expect("its agent goes away", "0+0/0 true")
	again := a.run("one", 1, 0, static, ofNode)[0]
	again.Name = pod.Name
	a.expect("somebody else has made it again", "0+1/0 false")
}

func TestDrainedStaysWhenAMirrorPodIsDeleted(t *testing.T) {
	for _, state := range []v1alpha1.StaticPodState{v1alpha1.StaticPodRunning, v1alpha1.StaticPodHolding, v1alpha1.StaticPodRestoring, "Nonsense"} {
		t.Run(string(state), func(t *testing.T) {
			a := newAgents(t)
			pod := a.mirror(0)
			a.settle()
			a.says(pod.Name, state, 0)
			a.remove(pod.UID)
			d := a.expect("the mirror pod is deleted", "1+0/0 false")
			if len(d.Nodes) > 0 && len(d.Nodes[0].Evacuate) > 0 {
				t.Errorf("a pod that does not exist is asked to leave: %+v", d.Nodes[0].Evacuate)
			}
			a.run("one", 1, 0, static, ofNode)[0].Name = pod.Name
			a.expect("the kubelet makes it again, with another UID", "0+1/0 false")
			if got := a.blockers(); len(got) > 0 {
				t.Errorf("the kubelet is blamed: %v", got)
			}
		})
	}
}

func TestAnUnmanageablePodIsRetainedInTheWordsOfItsAgent(t *testing.T) {
	a := newAgents(t)
	for _, name := range []string{"etcd", "proxy"} {
		a.run("one", 1, 0, static, ofNode)[0].Name = name
	}
	etcd := a.says("etcd", v1alpha1.StaticPodUnmanageable, 0)
	etcd.Reason, etcd.Message = v1alpha1.StaticPodControlPlane, "etcd is part of the control plane.\x1b[2J\n\u202e"+strings.Repeat("x", 2000)
	a.says("proxy", v1alpha1.StaticPodUnmanageable, 0).Message = "the folder cannot be written"
	a.says("gone", v1alpha1.StaticPodUnmanageable, 0)
	a.expect("nobody can take them down", "0+0/2 true")
	got := a.m.Status.NodeStatuses[0].Retained
	if len(got) != 2 || got[0].Object.Name != "etcd" || got[1].Object.Name != "proxy" {
		t.Fatalf("retained are %+v, want etcd and proxy", got)
	}
	if len(got[0].Message) > 500 {
		t.Errorf("the message has %d bytes", len(got[0].Message))
	}
}

// A drained node is away on purpose, and its pods are kept away on purpose.
func TestAnAgentThatIsAwayWithItsNode(t *testing.T) {
	a := newAgents(t)
	pod := a.mirror(0)
	a.settle()
	a.remove(pod.UID)
	a.says(pod.Name, v1alpha1.StaticPodHeld, 0)
	a.expect("it is held", "0+0/0 true")
	a.silentSince(a.now)
	node := a.find("one")
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	node.Status.Conditions[at].Status = corev1.ConditionUnknown
	a.now = a.now.Add(time.Hour)
	if a.expect("the node reboots", "0+0/0 true"); len(a.blockers()) > 0 {
		t.Errorf("a node that is away has blockers %v", a.blockers())
	}
	node = a.find("one")
	at = slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	node.Status.Conditions[at].Status, node.Status.Conditions[at].LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(a.now)
	if d := a.expect("the node is back", "0+0/0 true"); d.RequeueAfter != time.Minute || len(a.blockers()) > 0 {
		t.Errorf("the agent of a node that is just back is missed after %s: %v", d.RequeueAfter, a.blockers())
	}
	a.now = a.now.Add(time.Minute)
	d := a.expect("its agent is not back a minute later", "0+0/0 true")
	if got := a.blockers(); got != "NodeAgentDown NodeAgent/one 0" {
		t.Errorf("blockers are %v, want NodeAgentDown of no pod", got)
	}
	if len(d.Nodes) != 1 || !d.Nodes[0].MissesAgent {
		t.Errorf("it is not told: %+v", d.Nodes)
	}
}

// The maintenance is over, and only the agent can bring the pods back.
func TestPodsThatStayDownAreReportedOnTheNode(t *testing.T) {
	a := newAgents(t)
	a.says("proxy", v1alpha1.StaticPodHeld, 0)
	a.settle()
	a.m.Spec.Stage = v1alpha1.StageComplete
	a.settle()
	a.silentSince(a.now.Add(-time.Hour))
	d := maintenance.Decide(maintenance.Snapshot{Now: a.now, Nodes: a.nodes, Runners: a.runners})
	if len(d.Nodes) != 1 || !slices.Equal(reasons(d.Nodes[0].Events), []string{"Node/one NodeAgentDown"}) {
		t.Errorf("nobody is told: %+v", d.Nodes)
	}
}

// The line is copied into a shell of root.
func TestNoCommandComesFromAnAgent(t *testing.T) {
	for _, dir := range []string{"/etc; rm -rf /", "$(reboot)", "/a\nreboot", "", "etc", "/`id`", "/" + strings.Repeat("x", 5000)} {
		a := newAgents(t)
		a.said.Status.ManifestDir = dir
		a.says("proxy", v1alpha1.StaticPodHeld, 0)
		a.mirror(0)
		a.silentSince(a.now.Add(-time.Hour))
		a.settle()
		got := blocker.Explain(a.m.Status.NodeStatuses[0].Blockers[0])
		if !strings.Contains(got, "for f in STATIC_POD_PATH/.*.ebbtide-held;") || dir != "" && strings.Contains(got, dir+"/") {
			t.Errorf("folder %.40q: %.300s", dir, got)
		}
	}
}

// What an agent does not tell of may be told of in a moment.
func TestAStaticPodThatTheAgentDoesNotKnowIsWaitedFor(t *testing.T) {
	a := newAgents(t)
	a.run("one", 1, 0, static)
	a.expect("the agent has said nothing", "0+1/0 false")
	delete(a.runners.Agents, "one")
	a.expect("its NodeAgent is deleted", "0+0/1 true")
}
