package api

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// In a cluster that has never seen Ebbtide people ask what a drain would meet.
func TestWhyInAClusterWithoutEbbtide(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, Workload: true, Audit: true})
	a := &asking{Cluster: c, namespace: c.Namespace(t), node: c.Pool() + "-node"}
	keep(t, c.Client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.node}})
	run(t, c.Client, withData(podOn(a.namespace, a.node, "web-1", "web"), "cache"))
	run(t, c.Client, withData(podOn(a.namespace, a.node, "bare", "none"), "cache"))
	budgetOf(t, c.Client, budgeted{a.namespace, "web", "web", 1, 1}, needs(1))
	user, _ := c.User(t, rbacv1.PolicyRule{APIGroups: []string{"", "policy", "ebbtide.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	a.says(t, []string{"web-1", "-n", a.namespace, "--as", user}, a.namespace+"/web-1 is on node "+a.node+".", "It was not asked to leave because no NodeMaintenance holds its node.",
		"If its node was drained now, it would not leave:", "PodDisruptionBudget web can never allow a disruption: minAvailable 1 needs 1 available pods and there are 1 in all. (PDBUnsatisfiable)",
		"What helps: Such pods are not replaced.", "It has no controller and will not be replaced when it leaves.", "Data in these volumes will be lost when it leaves: cache.")
	a.says(t, []string{"node/" + a.node, "--as", user}, "Node "+a.node+" is schedulable, and no NodeMaintenance holds it.",
		"It has 2 pods. These would block a drain:", "1 pod would not leave: PodDisruptionBudget/"+a.namespace+"/web (PDBUnsatisfiable): ", "2 pods have no controller and would not be replaced.",
		"2 pods have data in temporary volumes, which would be lost.", "To preview a drain: kubectl ebbtide plan "+a.node)
	a.says(t, []string{"pdb/web", "-n", a.namespace, "--as", user}, "allows 0 disruptions", "can never allow a disruption", "No pods wait for it.")
	if wrote := (&foreseen{Cluster: c, t: t}).writes(); len(wrote) > 0 {
		t.Errorf("it writes: %q", wrote)
	}
	for _, verb := range []string{"status", "watch"} {
		if _, told, code := plugin(t, c, verb); code != 1 || !strings.Contains(told, "Ebbtide is not installed in this cluster") {
			t.Errorf("%s: %d %q", verb, code, told)
		}
	}
}

// Whoever looks changes nothing: the API server has no write of theirs in its audit log.
func TestReadingVerbsWriteNothing(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, Audit: true})
	namespace, name := c.Namespace(t), c.Pool()+"-kernel"
	d := newDraining(t, c, name)
	d.becomes("Blocked", "PDBExhausted", has("node-1", 2, webIsUsedUp()))
	web := podOn(namespace, "node-1", "web-1", "web")
	must(t, c.Client.Create(t.Context(), web))
	refused(t, c.Client, web, "", "web is used up.")
	user, asUser := c.User(t, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	for _, args := range []string{
		"status", "status " + name, "why pod/web-1 -n " + namespace, "why node/node-1", "why pdb/web -n " + namespace,
		"why machine/m -n " + namespace, "why nodemaintenance/" + name, "watch --timeout=1s", "rollout list", "rollout plan node-1", "rollout status night", "why noderollout/night",
	} {
		words := strings.Fields(args)
		plugin(t, c, words[0], append(words[1:], "--as", user)...)
	}
	audit := &foreseen{Cluster: c, t: t}
	if wrote := audit.writes(); len(wrote) > 0 {
		t.Errorf("who looks writes: %q", wrote)
	}
	if err := asUser.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "written"}}); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "a write to be logged", func(context.Context) (string, bool) {
		wrote := strings.Join(audit.writes(), ", ")
		return wrote, wrote == "create configmaps"
	})
}
