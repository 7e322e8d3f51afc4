package api

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/test/cluster"
)

// foreseen is a cluster that has never seen Ebbtide, with two nodes and what runs on
// the first. Its API server logs every write.
type foreseen struct {
	*cluster.Cluster
	t         *testing.T
	namespace string
	nodes     []string
}

func newForeseen(t *testing.T) *foreseen {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, Workload: true, Audit: true})
	f := &foreseen{Cluster: c, t: t, namespace: c.Namespace(t), nodes: []string{c.Pool() + "-a", c.Pool() + "-b"}}
	c.ForgetNodes(t, f.nodes...)
	for i, name := range f.nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, cluster.PoolLabel: c.Pool()}}}
		node.Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse([]string{"8", "1"}[i]), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10"),
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		must(t, c.Client.Create(t.Context(), node))
		// The API server takes it for new, and there is no controller that finds it ready.
		node.Spec.Taints = nil
		if err := c.Client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	f.pod("web-1", "ReplicaSet", "500m")
	f.pod("web-2", "ReplicaSet", "500m")
	f.pod("big-1", "ReplicaSet", "4")
	f.pod("db-0", "StatefulSet", "100m")
	f.pod("shell", "", "100m")
	budgetOf(t, c.Client, budgeted{f.namespace, "db", "db", 1, 1}, needs(1))
	return f
}

func (f *foreseen) pod(name, owner, cpu string) {
	f.t.Helper()
	app, _, _ := strings.Cut(name, "-")
	pod := podOn(f.namespace, f.nodes[0], name, app)
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: app, UID: types.UID("uid-of-" + app), Controller: new(true)}}
	} else {
		withData(pod, "scratch")
	}
	run(f.t, f.Client, pod)
}

// plan runs the verb and shows names as anybody has them.
func (f *foreseen) plan(args ...string) (out, told string, code int) {
	f.t.Helper()
	out, told, code = plugin(f.t, f.Cluster, "plan", args...)
	shown := strings.NewReplacer(f.namespace, "shop", f.Pool(), "node")
	return shown.Replace(out), shown.Replace(told), code
}

func TestPlanListsForbiddenReads(t *testing.T) {
	f := newForeseen(t)
	user, _ := f.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list"}})
	out, told, code := f.plan(f.nodes[1], "--as", user)
	if want := "node-b would be drained: no pod has to leave."; !strings.Contains(out, want) || code != 0 || told != "" {
		t.Errorf("exit code %d, it tells %q, want %q in\n%s", code, told, want, out)
	}
	out, _, code = f.plan("-l", cluster.PoolLabel+"="+f.Pool(), "--as", user)
	for _, want := range []string{
		"2 nodes may not be drained: it is unknown whether 5 of 5 pods would leave.",
		"whether pods may be evicted: PodDisruptionBudget could not be read: poddisruptionbudgets.policy is forbidden",
	} {
		if !strings.Contains(out, want) || code != 2 {
			t.Errorf("exit code %d, want 2 and %q in\n%s", code, want, out)
		}
	}
	nobody, _ := f.User(t)
	_, told, code = f.plan(f.nodes[0], "--as", nobody)
	if want := "error: you may not list nodes in the whole cluster"; !strings.HasPrefix(told, want) || code != 4 {
		t.Errorf("exit code %d, it tells %q, want %q", code, told, want)
	}
}

// writes are those that the API server has logged of users of this test.
func (f *foreseen) writes() (lines []string) {
	f.t.Helper()
	log, err := os.ReadFile(f.AuditLog)
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		var entry struct {
			ImpersonatedUser struct{ Username string } `json:"impersonatedUser"`
			Verb             string
			ObjectRef        struct{ Resource string } `json:"objectRef"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			f.t.Fatal(err)
		}
		// The test itself asks what the user may do.
		if strings.HasPrefix(entry.ImpersonatedUser.Username, f.Pool()) && entry.ObjectRef.Resource != "selfsubjectaccessreviews" {
			lines = append(lines, entry.Verb+" "+entry.ObjectRef.Resource)
		}
	}
	return lines
}
