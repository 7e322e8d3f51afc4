package api

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/cli"
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
