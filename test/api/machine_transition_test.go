package api

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// named is a document with another name in its metadata.
func named(name, document string) string {
	return strings.Replace(document, "name: one", "name: "+name, 1)
}

const configured = bare + "bootstrap: {configRef: {apiVersion: boot.example.com/v1, kind: BareConfig, name: one}}\n"

func TestChangeOfMachineIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	const (
		infrastructure = "infrastructureRef is immutable except for the version in apiVersion; create another Machine instead"
		config         = "configRef is immutable except for the version in apiVersion; create another Machine instead"
		added          = "configRef can neither be added nor removed; create another Machine instead"
		once           = "providerID can be set once"
		late           = "the infrastructure exists, since providerID is set, so that another preCreate hook would hold nothing; use preDrain or preTerminate"
	)
	tests := map[string]struct {
		before, change string
		want           refusal
	}{
		"another cluster": {bare, "clusterName: west", refusal{"spec.clusterName": "clusterName is immutable; create another Machine in the other Cluster"}},
		"another infrastructure": {
			bare, "infrastructureRef: {name: two}",
			refusal{"spec.infrastructureRef": infrastructure},
		},
		"another kind of infrastructure": {
			bare, "infrastructureRef: {kind: Other}",
			refusal{"spec.infrastructureRef": infrastructure},
		},
		"another group of infrastructure": {
			bare, "infrastructureRef: {apiVersion: other.example.com/v1}",
			refusal{"spec.infrastructureRef": infrastructure},
		},
		"no group": {bare, "infrastructureRef: {apiVersion: v1}", refusal{"spec.infrastructureRef": infrastructure}},
		"another bootstrap config": {
			configured, "bootstrap: {configRef: {name: two}}",
			refusal{"spec.bootstrap.configRef": config},
		},
		"a bootstrap config added": {
			bare, "bootstrap: {configRef: {apiVersion: boot.example.com/v1, kind: BareConfig, name: one}}",
			refusal{"spec.bootstrap": added},
		},
		"a bootstrap config removed":  {configured, "bootstrap: {configRef: null}", refusal{"spec.bootstrap": added}},
		"the whole bootstrap removed": {configured, "bootstrap: null", refusal{"spec.bootstrap": added}},
		"another provider ID":         {bare + "providerID: a", "providerID: b", refusal{"spec.providerID": once}},
		"a provider ID removed":       {bare + "providerID: a", "providerID: null", refusal{"spec.providerID": once}},
		"a preCreate hook too late": {
			bare + "providerID: a", "lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}]}",
			refusal{"spec.lifecycleHooks": late},
		},
		"another preCreate hook too late": {
			bare + "providerID: a\nlifecycleHooks: {preCreate: [{name: Abc, owner: somebody}]}",
			"lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}, {name: Def, owner: somebody}]}",
			refusal{"spec.lifecycleHooks": late},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := create(t, c, named("change-"+strings.ReplaceAll(strings.ToLower(name), " ", "-"), machine(test.before)))
			test.want.expect(t, patch(t, c, o, "spec:\n"+indent(test.change, "  ")))
		})
	}
}

// Written one after the other to the same Machine.
func TestChangeOfMachineIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, named("may-change", machine(configured+"lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}]}")))
	for _, change := range []string{
		"infrastructureRef: {apiVersion: infra.example.com/v2}",
		"bootstrap: {configRef: {apiVersion: boot.example.com/v2}}",
		"lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}, {name: Def, owner: somebody}]}",
		"providerID: example:///one",
		"lifecycleHooks: {preCreate: [{name: Def, owner: somebody else}]}",
		"lifecycleHooks: {preCreate: null, preDrain: [{name: Abc, owner: somebody}], preTerminate: [{name: Abc, owner: somebody}]}",
		"lifecycleHooks: null",
		"deletion: {nodeDrainTimeoutSeconds: 60}",
	} {
		if err := patch(t, c, o, "spec:\n"+indent(change, "  ")); err != nil {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// A Machine that Go clients write, which leave out what is empty, can be read and
// written again.
func TestMachineCanBeWrittenBack(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, spec := range map[string]string{"back-bare": bare, "back-configured": configured} {
		o := create(t, c, named(name, machine(spec)))
		m := &v1alpha1.Machine{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), m); err != nil {
			t.Fatal(err)
		}
		m.Finalizers = append(m.Finalizers, v1alpha1.MachineFinalizer)
		m.Spec.ProviderID = "example:///one"
		if err := c.Update(t.Context(), m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m.Finalizers = nil
		if err := c.Update(t.Context(), m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The largest objects are within what the rules may cost.
func TestLargeObjectsAreWithinTheBudget(t *testing.T) {
	t.Parallel()
	c := server(t)
	key := strings.Repeat("p", 253) + "/" + strings.Repeat("k", 57)
	value := strings.Repeat("v", 63)
	var labels, expressions []string
	for i := range 16 {
		labels = append(labels, fmt.Sprintf("%s%02d: %s", key, i, value))
		expressions = append(expressions, fmt.Sprintf("{key: %s%02d, operator: In, values: [%s]}", key, i, strings.Repeat(value+",", 64)))
	}
	selector := fmt.Sprintf("{matchLabels: {%s}, matchExpressions: [%s]}", strings.Join(labels, ", "), strings.Join(expressions, ", "))
	var pods []string
	for i := range 8 {
		pods = append(pods, strings.Replace(fmt.Sprintf("- {selector: %s, namespaceSelector: %s}", selector, selector), value, fmt.Sprintf("v%d", i), 1))
	}
	if err := try(t, c, drainRule(skips+"pods:\n"+strings.Join(pods, "\n"))); err != nil {
		t.Errorf("a large rule is refused: %.2000v", err)
	}
	long := strings.Repeat("n", 252)
	var all []string
	for i := range 64 {
		all = append(all, fmt.Sprintf("{name: %s%c%c, owner: %s}", long, 'A'+i/26, 'A'+i%26, strings.Repeat("o", 512)))
	}
	list := strings.Join(all, ", ")
	o := create(t, c, named("large", machine(bare+"providerID: a\nlifecycleHooks: {preCreate: ["+list+"], preDrain: ["+list+"], preTerminate: ["+list+"]}")))
	if err := patch(t, c, o, "spec: {deletion: {nodeDrainTimeoutSeconds: 1}}"); err != nil {
		t.Errorf("a change of a large Machine is refused: %.2000v", err)
	}
}
