package api

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/cli"
	"ebbtide.dev/ebbtide/test/cluster"
)

// agents runs kubectl ebbtide agents.
func agents(t *testing.T, c *cluster.Cluster, args ...string) (out, errOut string, code int) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code = cli.Run(t.Context(), append([]string{"agents", "--kubeconfig", c.Kubeconfig}, args...), streams)
	return stdout.String(), stderr.String(), code
}

// An administrator asks who keeps static pods away, and whether they can be brought back.
func TestTheAgentsOfNodes(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	namespace := c.Namespace(t)
	if _, told, code := agents(t, c); code != 0 || !strings.Contains(told, "No node has an agent") {
		t.Errorf("without agents: %q, %d", told, code)
	}
	held := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: c.Pool() + "-a"}}
	status := v1alpha1.NodeAgentStatus{
		PodName: "ebbtide-agent-a", ManifestDir: "/etc/kubernetes/manifests",
		StaticPods: []v1alpha1.StaticPod{
			{Namespace: "default", Name: "log-a", State: v1alpha1.StaticPodRunning},
			{Namespace: "default", Name: "proxy-a", State: v1alpha1.StaticPodHeld, MaintenanceName: "upgrade", Message: "proxy.yaml is put aside."},
		},
	}
	if err := c.Client.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(t.Context(), held) })
	held.Status = status
	if err := c.Client.Status().Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}

	out, _, code := agents(t, c, "-n", namespace, held.Name)
	words := strings.Fields(out)
	for _, want := range []string{"NODE ANSWERS HELD RUNNING LEFT SHUTDOWN MODE AGE " + held.Name + " no 1 1 0 - -", "default/proxy-a Held - upgrade proxy.yaml is put aside. default/log-a Running"} {
		if !strings.Contains(strings.Join(words, " "), want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if !strings.Contains(out, "keeps 1 static pod away: there is no pod "+namespace+"/ebbtide-agent-a on it. If it does not come back, run this on the node: for f in /etc/kubernetes/manifests/.*.ebbtide-held;") || code != 0 {
		t.Errorf("exit code %d, and\n%s", code, out)
	}

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ebbtide-agent-a"},
		Spec:       corev1.PodSpec{NodeName: held.Name, Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
	}
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := c.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := agents(t, c, "--namespace", namespace); !strings.Contains(strings.Join(strings.Fields(out), " "), held.Name+" yes 1 1 0") || strings.Contains(out, "STATIC POD") {
		t.Errorf("an agent that answers:\n%s", out)
	}
}

func TestWhoMayNotSeeTheAgentsIsToldWhatIsMissing(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	if _, told, code := agents(t, c, "node-of-nobody"); code != 1 || !strings.HasPrefix(told, "error: node node-of-nobody has no agent: see which have one with ") {
		t.Errorf("%q, %d", told, code)
	}
	nobody, _ := c.User(t)
	if _, told, code := agents(t, c, "--as", nobody); code != 1 || !strings.Contains(told, `list nodeagents: nodeagents.ebbtide.dev is forbidden: User "`+nobody+`"`) {
		t.Errorf("%q, %d", told, code)
	}
	agent := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: c.Pool() + "-b"}}
	if err := c.Client.Create(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(t.Context(), agent) })
	half, _ := c.User(t, rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"nodeagents"}, Verbs: []string{"list"}})
	out, told, code := agents(t, c, "--as", half, agent.Name)
	if code != 0 || !strings.Contains(out, "unknown") || !strings.Contains(told, "Whether the agents answer is unknown: list pods in namespace ebbtide-system: pods is forbidden") {
		t.Errorf("%d\n%s%s", code, out, told)
	}
}
