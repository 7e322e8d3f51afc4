package api

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/host"
	"ebbtide.dev/ebbtide/internal/cli"
	core "ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/cluster"
)

// plugin runs kubectl ebbtide.
func plugin(t *testing.T, c *cluster.Cluster, verb string, args ...string) (out, errOut string, code int) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code = cli.Run(t.Context(), append([]string{verb, "--kubeconfig", c.Kubeconfig}, args...), streams)
	return stdout.String(), stderr.String(), code
}

func agents(t *testing.T, c *cluster.Cluster, args ...string) (out, errOut string, code int) {
	t.Helper()
	return plugin(t, c, "agents", args...)
}

// An administrator asks who keeps static pods away, and whether they can be brought back.
func TestTheAgentsOfNodes(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	namespace := c.Namespace(t)
	if _, told, code := agents(t, c); code != 0 || !strings.Contains(told, "No node has an agent") {
		t.Errorf("without agents: %q, %d", told, code)
	}
	held := noted(t, c, c.Pool()+"-a", oneOfTwo("ebbtide-agent-a"))
	out, _, code := agents(t, c, "-n", namespace, held.Name)
	words := strings.Fields(out)
	for _, want := range []string{"NODE ANSWERS HELD RUNNING LEFT SHUTDOWN MODE AGE " + held.Name + " no 1 1 0 - -", "default/proxy-a Held - upgrade proxy.yaml is put aside. default/log-a Running"} {
		if !strings.Contains(strings.Join(words, " "), want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if !strings.Contains(out, "keeps 1 static pod away: pod "+namespace+"/ebbtide-agent-a does not exist. If it does not recover, run on the node: for f in /etc/kubernetes/manifests/.*.ebbtide-held;") || code != 0 {
		t.Errorf("exit code %d, and\n%s", code, out)
	}

	run(t, c.Client, podOn(namespace, held.Name, "ebbtide-agent-a", "agent"))
	assertAnswers(t, c, namespace, held.Name)
}

// assertAnswers wants an agent to be shown as one that answers and keeps a pod away.
func assertAnswers(t *testing.T, c *cluster.Cluster, namespace, node string) {
	t.Helper()
	if out, _, _ := agents(t, c, "--namespace", namespace); !strings.Contains(strings.Join(strings.Fields(out), " "), node+" yes 1 1 0") || strings.Contains(out, "STATIC POD") {
		t.Errorf("an agent that answers:\n%s", out)
	}
}

// noted is a NodeAgent with a status. It is gone when the test ends.
func noted(t *testing.T, c *cluster.Cluster, name string, status v1alpha1.NodeAgentStatus) *v1alpha1.NodeAgent {
	t.Helper()
	agent := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	keep(t, c.Client, agent)
	agent.Status = status
	if err := c.Client.Status().Update(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	return agent
}

// An agent that is a unit of its host has no pod, and renews a Lease.
func TestTheAgentOfAHost(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	namespace := c.Namespace(t)
	unit := noted(t, c, c.Pool()+"-a", oneOfTwo(""))
	out, _, _ := agents(t, c, "-n", namespace)
	if want := unit.Name + ": the agent is not responding and keeps 1 static pod away: it does not renew its Lease " + namespace + "/ebbtide-agent-" + unit.Name; !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
	beat := host.Heartbeat{Client: c.Client, Namespace: namespace, Name: core.AgentLease(unit.Name)}
	if err := beat.Renew(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: unit.Name, UID: unit.UID}}); err != nil {
		t.Fatal(err)
	}
	assertAnswers(t, c, namespace, unit.Name)
}

// oneOfTwo is what an agent says of two static pods, one of which is away.
func oneOfTwo(pod string) v1alpha1.NodeAgentStatus {
	return v1alpha1.NodeAgentStatus{
		PodName: pod, ManifestDir: "/etc/kubernetes/manifests",
		StaticPods: []v1alpha1.StaticPod{
			{Namespace: "default", Name: "log-a", State: v1alpha1.StaticPodRunning},
			{Namespace: "default", Name: "proxy-a", State: v1alpha1.StaticPodHeld, MaintenanceName: "upgrade", Message: "proxy.yaml is put aside."},
		},
	}
}

func TestWhoMayNotSeeTheAgentsIsToldWhatIsMissing(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	if _, told, code := agents(t, c, "node-of-nobody"); code != 1 || !strings.HasPrefix(told, "error: node \"node-of-nobody\" has no agent. List the agents with\n") {
		t.Errorf("%q, %d", told, code)
	}
	nobody, _ := c.User(t)
	if _, told, code := agents(t, c, "--as", nobody); code != 4 || !strings.HasPrefix(told, `error: you may not list nodeagents.ebbtide.dev in the whole cluster (user "`+nobody+`"). `) ||
		!strings.Contains(told, "\n  kubectl auth can-i list nodeagents.ebbtide.dev --as "+nobody+" --kubeconfig ") {
		t.Errorf("%q, %d", told, code)
	}
	// One is a pod, the other a unit of its host.
	for name, pod := range map[string]string{c.Pool() + "-b": "ebbtide-agent-b", c.Pool() + "-c": ""} {
		noted(t, c, name, v1alpha1.NodeAgentStatus{PodName: pod})
	}
	half, _ := c.User(t, rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"nodeagents"}, Verbs: []string{"list"}})
	out, told, code := agents(t, c, "--as", half, c.Pool()+"-b", c.Pool()+"-c")
	if code != 0 || strings.Count(out, " unknown ") != 2 {
		t.Errorf("%d\n%s", code, out)
	}
	for _, kind := range []string{"pods", "leases"} {
		if want := "Cannot determine whether the agents answer: list " + kind + " in namespace ebbtide-system: " + kind; !strings.Contains(told, want) {
			t.Errorf("want %q in\n%s", want, told)
		}
	}
}
