package api

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These set every field of a spec.
const (
	fullMaintenance = `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata: {name: full}
spec:
  reason: everything
  stage: Cordon
  drainDepth: DaemonSet
  inPlace: {expectedDowntimeSeconds: 600, lockTimeoutSeconds: 60, onLockTimeout: Wait}
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions: [{key: pool, operator: In, values: [a]}]
      matchFields: [{key: metadata.name, operator: In, values: [one]}]
  drainPlan:
  - podPriority: 1
    podType: Default
    podSelector:
      matchLabels: {app: a}
      matchExpressions: [{key: tier, operator: In, values: [b]}]`
	fullEvacuation = `
apiVersion: ebbtide.dev/v1alpha1
kind: Evacuation
metadata: {name: ` + uid + `-full, namespace: default}
spec:
  podRef: {name: full, uid: ` + uid + `}
  progressDeadlineSeconds: 600
  evacuators: [{evacuatorClass: a.example.com, priority: 7, role: mover}]`
	fullCluster = `
apiVersion: ebbtide.dev/v1alpha1
kind: Cluster
metadata: {name: full, namespace: default}
spec:
  kubeconfigSecretRef: {name: east-kubeconfig, key: value}
  paused: true
  controlPlane:
    externallyManaged: true
    ref: {apiVersion: v1, kind: ConfigMap, name: east}`
	fullMachine = `
apiVersion: ebbtide.dev/v1alpha1
kind: Machine
metadata: {name: full, namespace: default}
spec:
  clusterName: east
  providerID: example:///one
  infrastructureRef: {apiVersion: infra.example.com/v1, kind: BareMachine, name: one}
  bootstrap:
    configRef: {apiVersion: boot.example.com/v1, kind: BareConfig, name: one}
  lifecycleHooks:
    preCreate: [{name: Address, owner: ipam}]
    preDrain: [{name: MoveApps, owner: mover}]
    preTerminate: [{name: Backup, owner: keeper}]
  deletion:
    nodeDrainTimeoutSeconds: 1
    nodeVolumeDetachTimeoutSeconds: 2
    nodeDeletionTimeoutSeconds: 3`
	fullRule = `
apiVersion: ebbtide.dev/v1alpha1
kind: MachineDrainRule
metadata: {name: full, namespace: default}
spec:
  drain: {behavior: Drain, order: 1}
  machines:
  - selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
    clusterSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
  pods:
  - selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
    namespaceSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
  nodes:
  - selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}`
)

func TestEveryFieldRefusesAnotherType(t *testing.T) {
	t.Parallel()
	c := server(t)
	for kind, full := range map[string]string{
		"NodeMaintenance": fullMaintenance, "Evacuation": fullEvacuation,
		"Cluster": fullCluster, "Machine": fullMachine, "MachineDrainRule": fullRule,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if err := try(t, c, full); err != nil {
				t.Fatalf("the unchanged object is refused: %v", err)
			}
			o := object(t, full)
			eachField(o.Object["spec"], "spec", func(field string, replace func(value any)) {
				replace(anotherType)
				if err := c.Create(t.Context(), o.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), field) {
					t.Errorf("%s as %v: %v", field, anotherType, err)
				}
			})
		})
	}
}

// anotherType is a value that no field of ours has the type of.
var anotherType = []any{true}

// eachField visits every field below a value, with a function that replaces its
// value until the visit ends.
func eachField(value any, path string, visit func(field string, replace func(value any))) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			field := path + "." + key
			visit(field, func(other any) { v[key] = other })
			v[key] = child
			eachField(child, field, visit)
		}
	case []any:
		for i, child := range v {
			field := fmt.Sprintf("%s[%d]", path, i)
			visit(field, func(other any) { v[i] = other })
			v[i] = child
			eachField(child, field, visit)
		}
	}
}

// A misspelt field is refused where the client asks for it, as kubectl does.
func TestUnknownFieldIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := object(t, fullMaintenance)
	if err := unstructured.SetNestedField(o.Object, "Drain", "spec", "stages"); err != nil {
		t.Fatal(err)
	}
	err := c.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.stages"`) {
		t.Errorf("want the unknown field named, got: %v", err)
	}
}
