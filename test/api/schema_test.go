package api

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Together these set every field of every spec.
const (
	fullMaintenance = `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata: {name: full}
spec:
  reason: everything
  stage: Cordon
  drainDepth: DaemonSet
  inPlace: {expectedDowntimeSeconds: 600, lockTimeoutSeconds: 60, onLockTimeout: Wait, expectedRebootCount: 1}
  deadline: {time: "2036-03-01T22:00:00Z", onDeadline: Wait, deleteBeforeSeconds: 60}
  completedNodes: [{name: two}]
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
	fullWhen = `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata: {name: when}
spec:
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [one]}]}]}
  completeWhen: {newBoot: true, kubeletVersion: v1.37.1, kernelVersion: k, osImage: o, containerRuntimeVersion: c, readySeconds: 30}`
	fullRecord = `
apiVersion: ebbtide.dev/v1alpha1
kind: DrainRecord
metadata: {name: full}
spec:
  maintenanceRef: {name: reboot, uid: a}
  reason: everything
  inPlace: {expectedDowntimeSeconds: 600}
  pods: [{namespace: shop, name: db-0, uid: a, budgetUIDs: [b]}]
  budgets: [{namespace: shop, name: db, uid: b}]`
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

func TestFieldOfAnotherTypeIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for _, full := range []string{fullMaintenance, fullWhen, fullRecord, fullEvacuation, fullCluster, fullMachine, fullRule} {
		o := object(t, full)
		t.Run(o.GetKind(), func(t *testing.T) {
			t.Parallel()
			if err := try(t, c, full); err != nil {
				t.Fatalf("the unchanged object is refused: %v", err)
			}
			eachField(o.Object["spec"], "spec", func(field string, _ any, replace func(value any)) {
				// No field of ours is a list of truth values.
				replace([]any{true})
				if err := c.Create(t.Context(), o.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), field) {
					t.Errorf("%s as a list of truth values: %v", field, err)
				}
			})
		})
	}
}

// An agent must not keep managers from reading the NodeAgents of all other nodes. A list in place of
// a time would.
func TestTimeInStatusThatIsAListIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeAgent, metadata: {name: hostile}}")
	for field, status := range map[string]string{
		"status.staticPods[0].sinceTime":          `{"staticPods": [{"namespace": "a", "name": "b", "state": "Held", "sinceTime": [true]}]}`,
		"status.conditions[0].lastTransitionTime": `{"conditions": [{"type": "A", "status": "True", "reason": "B", "message": "", "lastTransitionTime": [true]}]}`,
	} {
		err := c.Status().Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status": `+status+`}`)))
		refusal{field: "must be a time"}.expect(t, err)
	}
}

// eachField visits every field below a value, with a function that replaces its value until the
// visit ends. A nil value takes the field away.
func eachField(value any, path string, visit func(field string, value any, replace func(value any))) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			child, field := v[key], path+"."+key
			visit(field, child, func(other any) {
				if v[key] = other; other == nil {
					delete(v, key)
				}
			})
			v[key] = child
			eachField(child, field, visit)
		}
	case []any:
		for i, child := range v {
			field := fmt.Sprintf("%s[%d]", path, i)
			visit(field, child, func(other any) { v[i] = other })
			v[i] = child
			eachField(child, field, visit)
		}
	}
}

// bounds are the least and the largest number, or length of a text or a list, by object and field.
var bounds = map[string]map[string][2]int{
	fullMaintenance: {
		"spec.reason":                                                          {0, 1024},
		"spec.inPlace.expectedDowntimeSeconds":                                 {1, 3600},
		"spec.inPlace.lockTimeoutSeconds":                                      {1, 86400},
		"spec.inPlace.expectedRebootCount":                                     {0, 10},
		"spec.deadline.deleteBeforeSeconds":                                    {3, 86400},
		"spec.completedNodes":                                                  {0, 256},
		"spec.drainPlan":                                                       {0, 64},
		"spec.drainPlan[0].podPriority":                                        {math.MinInt32, math.MaxInt32},
		"spec.drainPlan[0].podSelector.matchExpressions":                       {0, 16},
		"spec.drainPlan[0].podSelector.matchExpressions[0].values":             {0, 64},
		"spec.nodeSelector.nodeSelectorTerms":                                  {0, 256},
		"spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].key":       {0, 317},
		"spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values":    {0, 1024},
		"spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values[0]": {0, 63},
		"spec.nodeSelector.nodeSelectorTerms[0].matchFields[0].values[0]":      {0, 253},
	},
	fullWhen: {
		"spec.completeWhen.readySeconds":            {0, 3600},
		"spec.completeWhen.kubeletVersion":          {0, 128},
		"spec.completeWhen.kernelVersion":           {0, 256},
		"spec.completeWhen.osImage":                 {0, 256},
		"spec.completeWhen.containerRuntimeVersion": {0, 256},
	},
	fullRecord: {
		"spec.maintenanceRef.name":   {1, 253},
		"spec.reason":                {0, 1024},
		"spec.pods":                  {0, 512},
		"spec.pods[0].budgetUIDs":    {0, 16},
		"spec.budgets":               {0, 256},
		"spec.budgets[0].name":       {1, 253},
		"spec.pods[0].budgetUIDs[0]": {1, 64},
	},
	fullEvacuation: {
		"spec.podRef.name":                  {1, 253},
		"spec.podRef.uid":                   {1, 64},
		"spec.progressDeadlineSeconds":      {600, 21600},
		"spec.evacuators":                   {0, 100},
		"spec.evacuators[0].evacuatorClass": {1, 253},
		"spec.evacuators[0].priority":       {0, 100000},
		"spec.evacuators[0].role":           {0, 63},
	},
	fullCluster: {
		"spec.kubeconfigSecretRef.name":    {1, 253},
		"spec.kubeconfigSecretRef.key":     {1, 253},
		"spec.controlPlane.ref.apiVersion": {1, 317},
		"spec.controlPlane.ref.kind":       {1, 63},
		"spec.controlPlane.ref.name":       {1, 253},
	},
	fullMachine: {
		"spec.clusterName":                             {1, 253},
		"spec.providerID":                              {1, 512},
		"spec.infrastructureRef.kind":                  {1, 63},
		"spec.bootstrap.configRef.apiVersion":          {1, 317},
		"spec.bootstrap.configRef.kind":                {1, 63},
		"spec.bootstrap.configRef.name":                {1, 253},
		"spec.lifecycleHooks.preCreate":                {0, 64},
		"spec.lifecycleHooks.preDrain":                 {0, 64},
		"spec.lifecycleHooks.preTerminate":             {0, 64},
		"spec.lifecycleHooks.preDrain[0].name":         {3, 256},
		"spec.lifecycleHooks.preCreate[0].name":        {3, 256},
		"spec.lifecycleHooks.preCreate[0].owner":       {3, 512},
		"spec.lifecycleHooks.preTerminate[0].name":     {3, 256},
		"spec.lifecycleHooks.preTerminate[0].owner":    {3, 512},
		"spec.lifecycleHooks.preDrain[0].owner":        {3, 512},
		"spec.deletion.nodeDrainTimeoutSeconds":        {0, math.MaxInt32},
		"spec.deletion.nodeVolumeDetachTimeoutSeconds": {0, math.MaxInt32},
		"spec.deletion.nodeDeletionTimeoutSeconds":     {0, math.MaxInt32},
	},
	fullRule: {
		"spec.drain.order":                       {math.MinInt32, math.MaxInt32},
		"spec.machines":                          {0, 32},
		"spec.pods":                              {0, 32},
		"spec.nodes":                             {0, 32},
		"spec.pods[0].selector.matchExpressions": {0, 16},
		"spec.pods[0].namespaceSelector.matchExpressions":   {0, 16},
		"spec.machines[0].selector.matchExpressions":        {0, 16},
		"spec.machines[0].clusterSelector.matchExpressions": {0, 16},
		"spec.nodes[0].selector.matchExpressions":           {0, 16},
	},
}

// tooSmall and tooLarge are what the API server says of a field beyond its bounds.
var (
	tooSmall = []string{"should be greater than or equal to", "should be at least"}
	tooLarge = []string{"should be less than or equal to", "may not be more than", "must have at most"}
)

func TestFieldBeyondItsBoundsIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for full, fields := range bounds {
		o := object(t, full)
		t.Run(o.GetName()+o.GetKind(), func(t *testing.T) {
			t.Parallel()
			visited := 0
			eachField(o.Object["spec"], "spec", func(field string, is any, replace func(value any)) {
				if bound, bounded := fields[field]; bounded {
					visited++
					wantBound(t, bound, is, field, func(size int, words []string) bool {
						replace(sized(is, size))
						return refusesWith(c.Create(t.Context(), o.DeepCopy(), client.DryRunAll), field, words)
					})
				}
			})
			if visited != len(fields) {
				t.Errorf("%d of %d fields are there", visited, len(fields))
			}
		})
	}
}

// wantBound fails unless a field takes sizes within its bounds only.
func wantBound(t *testing.T, bound [2]int, is any, field string, refuses func(size int, words []string) bool) {
	t.Helper()
	if refuses(bound[0], tooSmall) || refuses(bound[1], tooLarge) || !refuses(bound[1]+1, tooLarge) {
		t.Errorf("%s is not bound by %d", field, bound)
	}
	if _, number := is.(float64); (number || bound[0] > 0) && !refuses(bound[0]-1, tooSmall) {
		t.Errorf("%s may be smaller than %d", field, bound[0])
	}
}

// sized returns a number, or a text or a list of a length.
func sized(like any, size int) any {
	switch v := like.(type) {
	case string:
		return strings.Repeat("n", size)
	case []any:
		list := make([]any, size)
		for i := range list {
			list[i] = v[0]
		}
		return list
	}
	return int64(size)
}

// refusesWith reports whether an error refuses a field in one of these words. Other fields may be
// refused beside it, for example the second of two equal entries.
func refusesWith(err error, field string, words []string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		for _, one := range words {
			if cause.Field == field && strings.Contains(cause.Message, one) {
				return true
			}
		}
	}
	return false
}

// required are the fields that an object cannot do without.
var required = map[string]string{
	fullMaintenance: "spec.nodeSelector spec.nodeSelector.nodeSelectorTerms spec.inPlace.expectedDowntimeSeconds spec.deadline.time spec.drainPlan[0].podPriority",
	fullRecord:      "spec.maintenanceRef spec.inPlace spec.pods[0].uid",
	fullEvacuation:  "spec.podRef.name spec.podRef.uid spec.evacuators[0].evacuatorClass spec.evacuators[0].priority",
	fullCluster:     "spec.kubeconfigSecretRef.name spec.controlPlane.ref.apiVersion spec.controlPlane.ref.kind spec.controlPlane.ref.name",
	fullMachine: "spec.clusterName spec.infrastructureRef spec.infrastructureRef.apiVersion spec.infrastructureRef.kind spec.infrastructureRef.name " +
		"spec.bootstrap.configRef.apiVersion spec.bootstrap.configRef.kind spec.bootstrap.configRef.name " +
		"spec.lifecycleHooks.preCreate[0].name spec.lifecycleHooks.preCreate[0].owner spec.lifecycleHooks.preDrain[0].name spec.lifecycleHooks.preDrain[0].owner " +
		"spec.lifecycleHooks.preTerminate[0].name spec.lifecycleHooks.preTerminate[0].owner",
	fullRule: "spec.drain spec.drain.behavior",
}

// choices are the values of fields that have few.
var choices = map[string]map[string]string{
	fullMaintenance: {
		"spec.stage": "Idle Cordon Drain Complete", "spec.drainDepth": "Default DaemonSet Static", "spec.drainPlan[0].podType": "Default DaemonSet Static",
		"spec.inPlace.onLockTimeout": "Evict Wait Delete", "spec.deadline.onDeadline": "Wait Delete",
	},
	fullRule: {"spec.drain.behavior": "Drain Skip WaitCompleted"},
}

func TestFieldThatIsMissingOrNoChoiceIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for full, fields := range required {
		o := object(t, full)
		missing := 0
		eachField(o.Object["spec"], "spec", func(field string, _ any, replace func(value any)) {
			create := func(value any) error {
				replace(value)
				return c.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
			}
			if slices.Contains(strings.Fields(fields), field) {
				missing++
				if err := create(nil); !refusesWith(err, field, []string{"Required value"}) {
					t.Errorf("%s without %s: %v", o.GetKind(), field, err)
				}
			}
			wantChoices(t, field, strings.Fields(choices[full][field]), create)
		})
		if want := len(strings.Fields(fields)); missing != want {
			t.Errorf("%d of %d fields of %s are there", missing, want, o.GetKind())
		}
	}
}

// wantChoices fails unless a field takes these values only. Without any it takes all.
func wantChoices(t *testing.T, field string, values []string, create func(value any) error) {
	t.Helper()
	if len(values) == 0 {
		return
	}
	for _, value := range slices.Concat(values, []string{"", "Other", strings.ToLower(values[0])}) {
		if err := create(value); refusesWith(err, field, []string{"supported values: "}) == slices.Contains(values, value) {
			t.Errorf("%s: %q: %v", field, value, err)
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
