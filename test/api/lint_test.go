package api

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/golden"
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
	run(t, c.Client, withData(podOn(ns, "", "db-0", "db"), "cache"))
	budgetOf(t, c.Client, budgeted{ns, "db", "db", 1, 1}, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0))})
	reader, _ := c.User(t, listing("", "pods", "persistentvolumeclaims", "persistentvolumes"),
		listing("policy", "poddisruptionbudgets"), listing("apps", "deployments", "replicasets", "statefulsets", "daemonsets"))

	out, told, code := plugin(t, c, "lint", "-n", ns, "--as", reader)
	if golden.Equal(t, "lint.txt", strings.ReplaceAll(out, ns, "NS")); told != "" || code != 2 {
		t.Errorf("exit code %d, it tells %q", code, told)
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
