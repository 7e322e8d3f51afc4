package api

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"ebbtide.dev/ebbtide/test/cluster"
)

// A user who may write NodeMaintenances, but not delete every node, exempts none from NodeBudgets.
func TestOnlyTheManagerExemptsMaintenancesFromNodeBudgets(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	const refused = "mark a NodeMaintenance as that of a deleted Machine or a node shutdown, and only Ebbtide writes them"
	write := ofEbbtide("nodemaintenances", "get", "create", "update", "patch", "delete")
	_, user := server.User(t, write, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}, ResourceNames: []string{"node-7"}})
	_, deleter := server.User(t, write, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}})
	plain := create(t, server.Client, maintenance("not-exempt", aNodeByName))
	exempt := create(t, server.Client, ofShutdown("node-shutdown-exempt", "node-7", "stage: Drain"))

	wantRefusal(t, "it is created", try(t, user, ofShutdown("node-shutdown-node-7", "node-7", "stage: Drain")), refused)
	for _, change := range []string{
		"labels: {ebbtide.dev/bridge: cluster-api}",
		"annotations: {ebbtide.dev/bridge-machine: default/any}",
		"labels: {ebbtide.dev/created-by: node-agent}",
	} {
		wantRefusal(t, change, patch(t, user, plain, "metadata: {"+change+"}"), refused)
	}
	wantRefusal(t, "the mark goes", patch(t, user, exempt, "metadata: {labels: {ebbtide.dev/created-by: null}}"), refused)
	wantRefusal(t, "another label", patch(t, user, exempt, "metadata: {labels: {team: a}}"))
	wantRefusal(t, "by a user who may delete every node", patch(t, deleter, plain, "metadata: {labels: {ebbtide.dev/bridge: cluster-api}}"))
}

// The default of appliesTo holds rollouts only, and a table shows it.
func TestNodeBudgetAppliesToRolloutsByDefault(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	budget := create(t, server.Client, nodeBudget("default-scope", anyNode))
	if spec, _ := budget.Object["spec"].(map[string]any); spec["appliesTo"] != "Rollouts" || spec["maxUnavailable"] != int64(1) {
		t.Errorf("the spec is %v", spec)
	}
	shown, err := server.Kubectl(t, "get", "nodebudgets", budget.GetName())
	if err != nil {
		t.Fatal(err)
	}
	if head, row, _ := strings.Cut(shown, "\n"); !strings.Contains(head, "APPLIESTO") || !strings.Contains(row, "Rollouts") {
		t.Errorf("kubectl shows\n%s", shown)
	}
}
