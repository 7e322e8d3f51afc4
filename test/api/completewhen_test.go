package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

const (
	aNodeByName  = "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-7]}]}]}"
	whenField    = "spec.completeWhen"
	kubeletField = "spec.completeWhen.kubeletVersion"
	oneNode      = "completeWhen works on one node: select it by matchFields metadata.name"
	something    = "give at least one of newBoot: true, kubeletVersion, kernelVersion, osImage and containerRuntimeVersion"
	versions     = "kubeletVersion is a version as nodes report it, such as v1.37.1, or a range of versions with three numbers each, such as >=1.37.0"
)

func TestCompleteWhenIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	for _, when := range []string{
		"{newBoot: true}",
		"{kubeletVersion: v1.37.1}",
		"{kubeletVersion: v1.37.1-gke.100}",
		`{kubeletVersion: ">=1.37.0"}`,
		`{kubeletVersion: ">=1.36.2 <1.38.0"}`,
		`{kubeletVersion: "<1.36.0 || >=1.37.0-rc.1 !=1.37.2"}`,
		`{kernelVersion: 6.12.1-generic, osImage: "Ebb OS 3 (rolling)", containerRuntimeVersion: "containerd://2.1.4"}`,
		"{newBoot: true, readySeconds: 0}",
		"{newBoot: true, readySeconds: 3600}",
		"{kernelVersion: " + strings.Repeat("k", 256) + "}",
		"null",
	} {
		if err := try(t, c, maintenance("good", aNodeByName+"\ncompleteWhen: "+when)); err != nil {
			t.Errorf("%s is refused: %v", when, err)
		}
	}
}

func TestCompleteWhenIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	const newBoot = "\ncompleteWhen: {newBoot: true}"
	for name, test := range map[string]struct {
		spec string
		want refusal
	}{
		"nothing": {aNodeByName + "\ncompleteWhen: {}", refusal{whenField: something}},
		"no boot": {aNodeByName + "\ncompleteWhen: {newBoot: false}", refusal{whenField: something}},
		"an empty version": {aNodeByName + `
completeWhen: {kubeletVersion: ""}`, refusal{whenField: something}},
		"only for how long":   {aNodeByName + "\ncompleteWhen: {readySeconds: 60}", refusal{whenField: something}},
		"a negative time":     {aNodeByName + "\ncompleteWhen: {newBoot: true, readySeconds: -1}", refusal{"spec.completeWhen.readySeconds": "should be greater than or equal to 0"}},
		"more than an hour":   {aNodeByName + "\ncompleteWhen: {newBoot: true, readySeconds: 3601}", refusal{"spec.completeWhen.readySeconds": "should be less than or equal to 3600"}},
		"a version without v": {aNodeByName + "\ncompleteWhen: {kubeletVersion: 1.37.1}", refusal{kubeletField: versions}},
		"a range of two": {aNodeByName + `
completeWhen: {kubeletVersion: ">=1.37"}`, refusal{kubeletField: versions}},
		"a range with v": {aNodeByName + `
completeWhen: {kubeletVersion: ">=v1.37.0"}`, refusal{kubeletField: versions}},
		"a wildcard": {aNodeByName + `
completeWhen: {kubeletVersion: ">=1.37.x"}`, refusal{kubeletField: versions}},
		"a range without end": {aNodeByName + `
completeWhen: {kubeletVersion: ">=1.37.0 ||"}`, refusal{kubeletField: versions}},
		"a number too large": {aNodeByName + `
completeWhen: {kubeletVersion: ">=99999999999999999999.0.0"}`, refusal{kubeletField: versions}},
		"a long range": {aNodeByName + `
completeWhen: {kubeletVersion: ">=1.37.0` + strings.Repeat(" <2.0.0", 20) + `"}`, refusal{kubeletField: "Too long: may not be more than 128"}},
		"a long kernel": {aNodeByName + "\ncompleteWhen: {kernelVersion: " + strings.Repeat("k", 257) + "}", refusal{"spec.completeWhen.kernelVersion": "Too long: may not be more than 256"}},
		"a node given back before": {aNodeByName + "\ncompletedNodes: [{name: a}]" + newBoot, refusal{
			"spec.completedNodes": "completeWhen works on one node: to give it back set stage Complete",
		}},
		"labels": {anyNode + newBoot, refusal{whenField: oneNode}},
		"two nodes": {
			"nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}, {matchFields: [{key: metadata.name, operator: In, values: [b]}]}]}" + newBoot,
			refusal{whenField: oneNode},
		},
		"all nodes but one": {
			"nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: NotIn, values: [a]}]}]}" + newBoot,
			refusal{whenField: oneNode},
		},
		"a node with a label": {
			"nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}" + newBoot,
			refusal{whenField: oneNode},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, maintenance("bad", test.spec)))
		})
	}
}

// It may come, change and go until the maintenance is complete.
func TestCompleteWhenMayChange(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, maintenance("complete-when-changes", aNodeByName))
	for _, change := range []string{
		"spec: {completeWhen: {newBoot: true}}",
		"spec: {stage: Drain}",
		"spec: {completeWhen: {kubeletVersion: v1.37.1}}",
		"spec: {completeWhen: null}",
		"spec: {completeWhen: {newBoot: true}}",
	} {
		if err := patch(t, c, o, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
	var nm v1alpha1.NodeMaintenance
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), &nm); err != nil {
		t.Fatal(err)
	}
	if got := nm.Spec.CompleteWhen; got == nil || got.ReadySeconds == nil || *got.ReadySeconds != 30 {
		t.Errorf("it is Ready for %+v, want 30s", got)
	}
	refusal{whenField: oneNode}.expect(t, patch(t, c, o, "spec: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}"))
	if err := patch(t, c, o, "spec: {stage: Complete}"); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"spec: {completeWhen: null}", "spec: {completeWhen: {kernelVersion: any}}"} {
		refusal{whenField: "completeWhen cannot change any more: this NodeMaintenance is Complete"}.expect(t, patch(t, c, o, change))
	}
}

// TestNobodyElseHandsNodesOver: who may change maintenances or nodes can neither have one
// completed before its node is back, nor have a node rebooted that was not drained.
func TestNobodyElseHandsNodesOver(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	_, attacker := server.User(t,
		rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"nodemaintenances", "nodemaintenances/status"}, Verbs: []string{"create", "get", "update", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"create", "get", "update", "patch"}},
	)
	patience.Eventually(t, "the policies to be obeyed", func(context.Context) (string, bool) {
		err := try(t, server.Client, "{apiVersion: v1, kind: Node, metadata: {name: probe-of-handed-over, labels: {ebbtide.dev/handed-over: 'true'}}}")
		return fmt.Sprint(err), apierrors.IsForbidden(err)
	})
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
