package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// listing is the right to list kinds of a group, and nothing else.
func listing(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list"}}
}

// Somebody who may only read, in a cluster that has never seen Ebbtide, finds what will
// trouble a drain.
func TestLintNeedsNoEbbtideAndWritesNothing(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, Workload: true})
	ns := c.Namespace(t)
	labels := map[string]string{"app": "db"}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db-0", Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "db", Image: "db"}},
			Volumes:    []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	for _, o := range []client.Object{budget, pod} {
		if err := c.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	for _, o := range []client.Object{budget, pod} {
		if err := c.Client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	reader, _ := c.User(t, listing("", "pods", "persistentvolumeclaims", "persistentvolumes"),
		listing("policy", "poddisruptionbudgets"), listing("apps", "deployments", "replicasets", "statefulsets", "daemonsets"))

	out, told, code := plugin(t, c, "lint", "-n", ns, "--as", reader)
	want := strings.ReplaceAll(`1 error, 1 warning, 1 note.
Error    PodDisruptionBudget/NS/db (BudgetNeverAllows, 1 pod)
         PodDisruptionBudget db can never allow a disruption: maxUnavailable is 0: no pod may ever be disrupted.
         Let one pod be unavailable: kubectl -n NS patch poddisruptionbudget db --type=merge -p '{"spec":{"maxUnavailable":1}}'
Warning  Namespace/NS (BarePod, 1 pod)
         Pods without a controller are not recreated when they leave their node: db-0.
         Use a Deployment or a Job, or keep them on their node with label cluster.x-k8s.io/drain=skip.
Note     Pod/NS/db-0 (LocalData, 1 pod)
         Data in these volumes is left behind or lost when the pods leave their node: cache.
         If the data matters, use network volumes, or keep the pods on their node during reboots: docs/in-place.md
`, "NS", ns)
	if diff := cmp.Diff(want, out); diff != "" || told != "" || code != 2 {
		t.Errorf("exit code %d, it tells %q (-want +got):\n%s", code, told, diff)
	}
	out, told, code = plugin(t, c, "lint", "-n", ns, "--as", reader, "-o", "name")
	if want := "poddisruptionbudget.policy/db\nnamespace/" + ns + "\npod/db-0\n"; out != want || told != "" || code != 2 {
		t.Errorf("-o name: exit code %d, it tells %q\n%s", code, told, out)
	}

	// Who may see pods and nothing else is told what was not looked at.
	watcher, _ := c.User(t, listing("", "pods"))
	out, told, code = plugin(t, c, "lint", "-n", ns, "--as", watcher)
	if strings.Count(told, "Incomplete: list ") != 7 || !strings.Contains(out, "0 errors, 1 warning, 1 note.") || code != 0 {
		t.Errorf("with pods alone: exit code %d, it tells\n%s\n%s", code, told, out)
	}
	nobody, _ := c.User(t)
	if out, told, code = plugin(t, c, "lint", "-n", ns, "--as", nobody); code != 4 || out != "" || !strings.Contains(told, "pods") {
		t.Errorf("without rights: exit code %d, it prints %q and tells\n%s", code, out, told)
	}
}
