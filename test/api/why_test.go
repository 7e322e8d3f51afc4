package api

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/cli"
	"ebbtide.dev/ebbtide/test/cluster"
)

func why(t *testing.T, c *cluster.Cluster, args ...string) (out, told string, code int) {
	t.Helper()
	return plugin(t, c, "why", args...)
}

// asking is a cluster with a node that a maintenance holds, and a pod on it.
type asking struct {
	*cluster.Cluster
	namespace, node string
	pod             *corev1.Pod
}

func newAsking(t *testing.T) *asking {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	a := &asking{Cluster: c, namespace: c.Namespace(t), node: c.Pool() + "-node"}
	keep(t, c.Client, object(t, maintenance(c.Pool()+"-kernel", anyNode+"\nstage: Drain")))
	keep(t, c.Mighty(t, cluster.Account.User()), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.node, Annotations: map[string]string{
		v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["` + c.Pool() + `-kernel"]}`,
	}}})
	a.pod = podOn(a.namespace, a.node, "db-0", "db")
	keep(t, c.Client, a.pod)
	return a
}

// says wants all of these lines, in this order.
func (a *asking) says(t *testing.T, args []string, lines ...string) {
	t.Helper()
	out, told, code := why(t, a.Cluster, args...)
	for _, line := range lines {
		_, rest, found := strings.Cut(out, line)
		if !found {
			t.Fatalf("want %q in this, with exit code 0:\n%s%s%d", line, out, told, code)
		}
		out = rest
	}
	if code != 0 || told != "" {
		t.Errorf("exit code %d, and it tells %q", code, told)
	}
}

// Who may not see everything is not told that there is nothing.
func TestWhyIsUnknown(t *testing.T) {
	a := newAsking(t)
	user, _ := a.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
	out, told, code := why(t, a.Cluster, "pod/db-0", "-n", a.namespace, "--as", user)
	if code != 0 || !strings.Contains(out, "Cannot determine whether it was asked to leave.") || strings.Contains(out, "was not asked") {
		t.Errorf("%d\n%s", code, out)
	}
	for _, kind := range []string{"evacuation", "node"} {
		if !strings.Contains(told, "Incomplete: get "+kind+" ") {
			t.Errorf("of %s it tells nothing in\n%s", kind, told)
		}
	}
	if _, told, code := why(t, a.Cluster, "pod/nobody", "-n", a.namespace, "--as", user); code != 4 ||
		!strings.Contains(told, "pod \""+a.namespace+"/nobody\" not found, and cannot search for a static pod that is down: you may not list nodeagents.ebbtide.dev in the whole cluster ") {
		t.Errorf("%d %s", code, told)
	}
}

// Who may write a Node can name as many maintenances as an annotation takes. No more than
// a few are asked for.
func TestWhyAsksForFewOfTheMaintenancesThatANodeNames(t *testing.T) {
	a := newAsking(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.node}}
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprintf("m-%d", i))
	}
	ledger := `{"wasUnschedulable":false,"holders":[` + strings.Join(names, ",") + `]}`
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.CordonAnnotation, ledger)
	if err := a.Mighty(t, cluster.Account.User()).Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	user, _ := a.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get"}})
	_, told, code := why(t, a.Cluster, "pod/db-0", "-n", a.namespace, "--as", user)
	if asked := strings.Count(told, "Incomplete: get nodemaintenance m-"); asked != 8 || code != 0 {
		t.Errorf("%d maintenances are asked for, want 8; exit code %d\n%s", asked, code, told)
	}
}

// plugin runs kubectl ebbtide.
func plugin(t *testing.T, c *cluster.Cluster, verb string, args ...string) (out, errOut string, code int) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code = cli.Run(t.Context(), append([]string{verb, "--kubeconfig", c.Kubeconfig}, args...), streams)
	return stdout.String(), stderr.String(), code
}
