package api

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// TestOnlyTheManagerHandsNodesOver: who may change maintenances or nodes can neither have one
// completed before its node is back, nor have a node rebooted that was not drained.
func TestOnlyTheManagerHandsNodesOver(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	_, attacker := server.User(t,
		rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"nodemaintenances", "nodemaintenances/status"}, Verbs: []string{"create", "get", "update", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"create", "get", "update", "patch"}},
	)
	refused := func(what, want string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
	}
	const (
		ofMaintenances = "annotation ebbtide.dev/handed-over says what the node was when it was handed over, which Ebbtide alone writes"
		ofNodes        = " of a node is what Ebbtide has noted about it, and Ebbtide alone writes that"
		forged         = "metadata: {annotations: {ebbtide.dev/handed-over: forged}}"
		label          = "metadata: {labels: {ebbtide.dev/handed-over: 'true'}}"
		by             = "metadata: {annotations: {ebbtide.dev/handed-over-by: m}}"
	)
	m := create(t, server.Client, maintenance("forged-hand-over", aNodeByName+"\ncompleteWhen: {newBoot: true}"))
	refused("the record", ofMaintenances, patch(t, attacker, m, forged))
	refused("the record by an administrator", ofMaintenances, patch(t, server.Client, m, forged))
	// The status of a maintenance takes no annotation along.
	if err := patch(t, attacker, m, "status: {nodeCount: 1}\n"+forged); err != nil && !apierrors.IsForbidden(err) {
		t.Errorf("a status: %v", err)
	}
	expectUnmarked(t, server.Client, m)

	node := create(t, server.Client, "{apiVersion: v1, kind: Node, metadata: {name: forged-hand-over}}")
	refused("the label", ofNodes, patch(t, attacker, node, label))
	refused("another value", ofNodes, patch(t, attacker, node, "metadata: {labels: {ebbtide.dev/handed-over: soon}}"))
	refused("the annotation", ofNodes, patch(t, attacker, node, by))
	refused("with the status", ofNodes, patch(t, attacker, node, "status: {nodeInfo: {bootID: b}}\n"+label))
	refused("a new node", ofNodes, try(t, attacker, "{apiVersion: v1, kind: Node, metadata: {name: another-hand-over, labels: {ebbtide.dev/handed-over: 'true'}}}"))
	expectUnmarked(t, server.Client, node)

	manager := theManager(t, server, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}}, &warnings{})
	for _, ours := range []string{label, by} {
		if err := patch(t, manager, node, ours); err != nil {
			t.Errorf("the manager's own: %v", err)
		}
	}
	for _, mine := range []string{"metadata: {labels: {a: b}}", "spec: {unschedulable: true}", "status: {nodeInfo: {bootID: b}}", "metadata: {labels: {ebbtide.dev/handed-over: null}}"} {
		if err := patch(t, attacker, node, mine); err != nil {
			t.Errorf("%s of a node that is handed over: %v", mine, err)
		}
	}
}

func expectUnmarked(t *testing.T, c client.Client, o *unstructured.Unstructured) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	if o.GetAnnotations()[v1alpha1.HandedOverAnnotation]+o.GetLabels()[v1alpha1.HandedOverLabel]+o.GetAnnotations()[v1alpha1.HandedOverByAnnotation] != "" {
		t.Errorf("%s is handed over: %v, %v", o.GetName(), o.GetAnnotations(), o.GetLabels())
	}
}
