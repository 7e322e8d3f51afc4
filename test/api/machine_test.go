package api

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Each returns an object of its kind with these lines in its spec.
func machine(name, spec string) string         { return namespaced("Machine", name, spec) }
func workloadCluster(name, spec string) string { return namespaced("Cluster", name, spec) }
func drainRule(name, spec string) string       { return namespaced("MachineDrainRule", name, spec) }

func namespaced(kind, name, spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: %s
metadata: {name: %s, namespace: default}
spec:
%s`, kind, name, indent(spec, "  "))
}

const (
	// bare is what a Machine needs.
	bare       = "clusterName: east\ninfrastructureRef: {apiVersion: infra.example.com/v1, kind: BareMachine, name: one}\n"
	configured = bare + "bootstrap: {configRef: {apiVersion: boot.example.com/v1, kind: BareConfig, name: one}}\n"
	skips      = "drain: {behavior: Skip}\n"
)

func TestClusterIsAcceptedOrRefused(t *testing.T) {
	const secret = "spec.kubeconfigSecretRef"
	name, key := refusal{secret + ".name": `use the name of a Secret, such as "east-kubeconfig"`}, refusal{secret + ".key": `use the key of a Secret, such as "value"`}
	kind(workloadCluster).play(t, map[string]row{
		"nothing in it":                 {spec: `{}`},
		"a key of its own":              {spec: `kubeconfigSecretRef: {name: east.example.com, key: admin_1.conf}`},
		"the longest names":             {spec: `kubeconfigSecretRef: {name: ` + strings.Repeat("n", 253) + `, key: ` + strings.Repeat("k", 253) + `}`},
		"an external control plane":     {spec: `controlPlane: {externallyManaged: true}`},
		"an object for a control plane": {spec: `controlPlane: {ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlane, name: east}}`},
		"a name in capitals":            {spec: `kubeconfigSecretRef: {name: East}`, refused: name},
		"a Secret elsewhere":            {spec: `kubeconfigSecretRef: {name: other/east}`, refused: name},
		"a key with a slash":            {spec: `kubeconfigSecretRef: {name: east, key: a/b}`, refused: key},
		"a key that is a folder":        {spec: `kubeconfigSecretRef: {name: east, key: ..}`, refused: key},
	})
}

// TestDefaultsOfMachineKinds: the key is the one that Cluster API uses.
func TestDefaultsOfMachineKinds(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, workloadCluster("defaults", `kubeconfigSecretRef: {name: east-kubeconfig}`))
	want := v1alpha1.ClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "east-kubeconfig", Key: "value"}}
	if diff := cmp.Diff(want, read[v1alpha1.Cluster](t, c, o).Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	deletion := v1alpha1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds: ptr.To[int32](60), NodeDeletionTimeoutSeconds: ptr.To[int32](v1alpha1.DefaultNodeDeletionTimeoutSeconds),
	}
	o = create(t, c, machine("defaults", bare+"deletion: {nodeDrainTimeoutSeconds: 60}"))
	if diff := cmp.Diff(deletion, read[v1alpha1.Machine](t, c, o).Spec.Deletion); diff != "" {
		t.Errorf("deletion (-want +got):\n%s", diff)
	}
}

func TestReferenceIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	version, name := refusal{".apiVersion": `use a group and a version, such as "infrastructure.cluster.x-k8s.io/v1beta2"`}, refusal{".name": `use the name of an object, such as "east-1"`}
	good := `{apiVersion: infra.example.com/v1, kind: BareMachine, name: one}`
	for reference, want := range map[string]refusal{
		`{apiVersion: infra.example.com/, kind: A, name: a}`:         version,
		`{apiVersion: infra/example/v1, kind: A, name: a}`:           version,
		`{apiVersion: infra.example.com, kind: A, name: a}`:          version,
		`{apiVersion: ebbtide.dev/v1alpha1, kind: Machine, name: a}`: {".apiVersion": "name an object of a provider; Machines and Clusters are not made of each other"},
		`{apiVersion: v1, kind: A B, name: a}`:                       {".kind": `use a kind, such as "DockerMachine"`},
		`{apiVersion: v1, kind: A, name: other/a}`:                   name,
		`{apiVersion: v1, kind: A, name: East}`:                      name,
	} {
		at(want, "spec.controlPlane.ref").expect(t, try(t, c, workloadCluster("bad", "controlPlane: {ref: "+reference+"}")))
		at(want, "spec.infrastructureRef").expect(t, try(t, c, machine("bad", "clusterName: east\ninfrastructureRef: "+reference)))
		at(want, "spec.bootstrap.configRef").expect(t,
			try(t, c, machine("bad", "clusterName: east\ninfrastructureRef: "+good+"\nbootstrap: {configRef: "+reference+"}")))
	}
}

// bareMachine returns a Machine with these lines beside what it needs.
func bareMachine(name, spec string) string { return machine(name, bare+spec) }

// The first is the example of machine-deletion-hooks.
func TestMachineIsAcceptedOrRefused(t *testing.T) {
	const (
		infrastructure = "infrastructureRef is immutable except for the version in apiVersion; create another Machine instead"
		config         = "configRef is immutable except for the version in apiVersion; create another Machine instead"
		providerID     = "providerID can be set once"
		late           = "the infrastructure exists, since providerID is set, so that another preCreate hook would hold nothing; use preDrain or preTerminate"
		boot           = "bootstrap: {configRef: {apiVersion: boot.example.com/v1, kind: BareConfig, name: one}}"
	)
	ofInfrastructure, ofConfig := refusal{"spec.infrastructureRef": infrastructure}, refusal{"spec.bootstrap.configRef": config}
	added, once := refusal{"spec.bootstrap": "configRef can neither be added nor removed; create another Machine instead"}, refusal{"spec.providerID": providerID}
	kind(bareMachine).play(t, map[string]row{
		"hooks at all points": {spec: `
lifecycleHooks:
  preCreate:
  - name: IPAMController
    owner: my-ipam-controller
  preDrain:
  - name: MigrateImportantApp
    owner: my-app-migration-controller
  preTerminate:
  - name: BackupFileSytem
    owner: my-backup-controller
  - name: WaitForStorageDetach
    owner: my-custom-storage-detach-controller`},
		"the names of the hooks document": {spec: `lifecycleHooks: {preDrain: [{name: pre-drain, owner: somebody}, {name: example.com/x, owner: somebody}, {name: Move2, owner: somebody}]}`},
		"the longest hook":                {spec: `lifecycleHooks: {preDrain: [{name: ` + strings.Repeat("n", 256) + `, owner: ` + strings.Repeat("o", 512) + `}]}`},
		"one name at all points":          {spec: `lifecycleHooks: {preCreate: [` + hooks(1) + `], preDrain: [` + hooks(1) + `], preTerminate: [` + hooks(1) + `]}`},
		"an owner with odd letters":       {spec: `lifecycleHooks: {preDrain: [{name: Abc, owner: "Jörg (team/öl), call 112"}]}`},
		"a provider ID of any words":      {spec: `providerID: "any words 1"`},
		"another cluster":                 {boot, "spec: {clusterName: west}", refusal{"spec.clusterName": "clusterName is immutable; create another Machine in the other Cluster"}},
		"another infrastructure":          {boot, "spec: {infrastructureRef: {name: two}}", ofInfrastructure},
		"another kind of infrastructure":  {boot, "spec: {infrastructureRef: {kind: Other}}", ofInfrastructure},
		"another group of infrastructure": {boot, "spec: {infrastructureRef: {apiVersion: other.example.com/v1}}", ofInfrastructure},
		"infrastructure of no group":      {boot, "spec: {infrastructureRef: {apiVersion: v1}}", ofInfrastructure},
		"another bootstrap config":        {boot, "spec: {bootstrap: {configRef: {name: two}}}", ofConfig},
		"a bootstrap config added":        {"", "spec: {" + boot + "}", added},
		"a bootstrap config removed":      {boot, "spec: {bootstrap: {configRef: null}}", added},
		"the whole bootstrap removed":     {boot, "spec: {bootstrap: null}", added},
		"another provider ID":             {"providerID: a", "spec: {providerID: b}", once},
		"a provider ID removed":           {"providerID: a", "spec: {providerID: null}", once},
		"a preCreate hook too late":       {"providerID: a", "spec: {lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}]}}", refusal{"spec.lifecycleHooks": late}},
		"another preCreate hook too late": {
			"providerID: a\nlifecycleHooks: {preCreate: [{name: Abc, owner: somebody}]}",
			"spec: {lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}, {name: Def, owner: somebody}]}}",
			refusal{"spec.lifecycleHooks": late},
		},
	})
}

func TestMachineOfNoClusterIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for _, name := range []string{"other/east", "East"} {
		refusal{"spec.clusterName": `use the name of a Cluster, such as "east"`}.expect(t, try(t, c, machine("bad", strings.Replace(bare, "east", name, 1))))
	}
}

// hooks returns n hooks with different names.
func hooks(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("{name: Hook%c%c, owner: somebody}", 'A'+i/26, 'A'+i%26))
	}
	return strings.Join(list, ", ")
}

func TestHookIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	// Below the path of the list of hooks.
	for list, want := range map[string]refusal{
		`{name: Move Apps, owner: somebody}`:                           {"[0].name": "use at least one letter, and no spaces"},
		`{name: "Move\nApps", owner: somebody}`:                        {"[0].name": "no spaces"},
		`{name: "123", owner: somebody}`:                               {"[0].name": "use at least one letter"},
		`{name: Abc, owner: somebody}, {name: Abc, owner: other}`:      {"[1]": "Duplicate value"},
		`{name: A B, owner: somebody}, {name: "1-2", owner: somebody}`: {"[0].name": "no spaces", "[1].name": "at least one letter"},
	} {
		for _, point := range []string{"preCreate", "preDrain", "preTerminate"} {
			at(want, "spec.lifecycleHooks."+point).expect(t, try(t, c, bareMachine("bad", fmt.Sprintf("lifecycleHooks: {%s: [%s]}", point, list))))
		}
	}
}

// Written one after the other to the same Machine.
func TestChangeOfMachineIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	accepts(t, c, create(t, c, machine("may-change", configured+"lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}]}")),
		"spec: {infrastructureRef: {apiVersion: infra.example.com/v2}}",
		"spec: {bootstrap: {configRef: {apiVersion: boot.example.com/v2}}}",
		"spec: {lifecycleHooks: {preCreate: [{name: Abc, owner: somebody}, {name: Def, owner: somebody}]}}",
		"spec: {providerID: 'example:///one'}",
		"spec: {lifecycleHooks: {preCreate: [{name: Def, owner: somebody else}]}}",
		"spec: {lifecycleHooks: {preCreate: null, preDrain: [{name: Abc, owner: somebody}], preTerminate: [{name: Abc, owner: somebody}]}}",
		"spec: {lifecycleHooks: null}",
		"spec: {deletion: {nodeDrainTimeoutSeconds: 60}}")
}

// A Machine that Go clients write, which leave out what is empty, can be read and written again.
func TestMachineIsWrittenBack(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, spec := range map[string]string{"back-bare": bare, "back-configured": configured} {
		m := read[v1alpha1.Machine](t, c, create(t, c, machine(name, spec)))
		m.Spec.ProviderID = "example:///one"
		for _, finalizers := range [][]string{{v1alpha1.MachineFinalizer}, nil} {
			m.Finalizers = finalizers
			if err := c.Update(t.Context(), m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The largest objects are within what the rules may cost.
func TestLargeObjectIsAccepted(t *testing.T) {
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
	if err := try(t, c, drainRule("large", skips+"pods:\n"+strings.Join(pods, "\n"))); err != nil {
		t.Errorf("a large rule is refused: %.2000v", err)
	}
	long := strings.Repeat("n", 252)
	var all []string
	for i := range 64 {
		all = append(all, fmt.Sprintf("{name: %s%c%c, owner: %s}", long, 'A'+i/26, 'A'+i%26, strings.Repeat("o", 512)))
	}
	list := strings.Join(all, ", ")
	o := create(t, c, machine("large", bare+"providerID: a\nlifecycleHooks: {preCreate: ["+list+"], preDrain: ["+list+"], preTerminate: ["+list+"]}"))
	if err := patch(t, c, o, "spec: {deletion: {nodeDrainTimeoutSeconds: 1}}"); err != nil {
		t.Errorf("a change of a large Machine is refused: %.2000v", err)
	}
}

// entries returns n different entries of a list.
func entries(list string, n int) string {
	lines := []string{list + ":"}
	for i := range n {
		lines = append(lines, fmt.Sprintf("- selector: {matchLabels: {app: a%d}}", i))
	}
	return strings.Join(lines, "\n")
}

// documented are the examples of machine-drain-rules, and its scheme.
var documented = map[string]row{
	"exclude pods from drain": {spec: `
drain:
  behavior: Skip
machines:
- selector: {}
pods:
# This selects all Pods with the app label in (example-app1,example-app2) AND in the example-namespace
- selector:
    matchExpressions:
    - key: app
      operator: In
      values:
      - example-app1
      - example-app2
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: example-namespace
# This additionally selects Pods with the app label == monitoring AND in the monitoring namespace
- selector:
    matchExpressions:
    - key: app
      operator: In
      values:
      - monitoring
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: monitoring`},
	"drain order": {spec: `
drain:
  behavior: Drain
  order: 100
machines:
- selector: {}
pods:
- selector:
    matchLabels:
      app: portworx`},
	"selectors with nothing in them": {spec: `
drain:
  behavior: Drain
  order: 100
machines:
- selector:
    matchLabels:
    matchExpressions:
  clusterSelector:
    matchLabels:
    matchExpressions:
pods:
- selector:
    matchLabels:
    matchExpressions:
  namespaceSelector:
    matchLabels:
    matchExpressions:`},
}

func TestMachineDrainRuleIsAcceptedOrRefused(t *testing.T) {
	const empty = "an empty entry does not say what it selects; give it "
	withOrder := refusal{"spec.drain.order": `order must not be set if drain behavior is "Skip" or "WaitCompleted"`}
	rows := map[string]row{
		"for everything":         {spec: skips},
		"no order":               {spec: "drain: {behavior: Drain}"},
		"32 entries each":        {spec: skips + entries("machines", 32) + "\n" + entries("pods", 32) + "\n" + entries("nodes", 32)},
		"only the second":        {spec: skips + "machines: [{clusterSelector: {}}]\npods: [{namespaceSelector: {}}]"},
		"alike but for one half": {spec: skips + "pods: [{selector: {}}, {namespaceSelector: {}}, {selector: {}, namespaceSelector: {}}]"},
		"order with Skip":        {spec: "drain: {behavior: Skip, order: 1}", refused: withOrder},
		"order 0 with Skip":      {spec: "drain: {behavior: Skip, order: 0}", refused: withOrder},
		"order with waiting":     {spec: "drain: {behavior: WaitCompleted, order: -1}", refused: withOrder},
		"a field of no selector": {spec: skips + "pods: [{podSelector: {}}]", refused: refusal{"spec.pods[0]": empty + "at least one of selector and namespaceSelector"}},
		"empty lists": {spec: skips + "machines: []\npods: []\nnodes: []", refused: refusal{
			"spec.machines": "an empty list selects nothing; leave machines out to mean all, or give at least one entry",
			"spec.pods":     "an empty list selects nothing; leave pods out to mean all, or give at least one entry",
			"spec.nodes":    "an empty list selects nothing; leave nodes out if no NodeMaintenance is meant, or give at least one entry",
		}},
		"empty entries": {spec: skips + "machines: [{}]\npods: [{selector: {}}, {}]\nnodes: [{}]", refused: refusal{
			"spec.machines[0]": empty + "at least one of selector and clusterSelector, such as selector: {} for all",
			"spec.pods[1]":     empty + "at least one of selector and namespaceSelector, such as selector: {} for all",
			"spec.nodes[0]":    empty + "a selector, such as selector: {} for all",
		}},
		"duplicates": {spec: skips + "machines: [{selector: {}}, {selector: {}}]\n" +
			"pods: [{selector: {matchLabels: {a: b, c: d}}}, {namespaceSelector: {}}, {selector: {matchLabels: {c: d, a: b}}}]\n" +
			"nodes: [{selector: {}}, {selector: {}}]", refused: refusal{
			"spec.machines": "entries in machines must be unique", "spec.pods": "entries in pods must be unique", "spec.nodes": "entries in nodes must be unique",
		}},
	}
	maps.Copy(rows, documented)
	kind(drainRule).play(t, rows)
}
