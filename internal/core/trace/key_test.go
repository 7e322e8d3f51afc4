package trace_test

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/trace"
)

const apiFolder = "../../../api/v1alpha1"

var bearers = map[string]trace.Object{
	"MaintenanceCompletionFinalizer": &v1alpha1.NodeMaintenance{ObjectMeta: finalizers(v1alpha1.MaintenanceCompletionFinalizer)},
	"RolloutFinalizer":               &v1alpha1.NodeMaintenance{ObjectMeta: finalizers(v1alpha1.RolloutFinalizer)},
	"InstigatorFinalizerPrefix":      &v1alpha1.Evacuation{ObjectMeta: finalizers(v1alpha1.InstigatorFinalizerPrefix + "example.com")},
	"NodeMaintenanceInstigator":      &v1alpha1.Evacuation{ObjectMeta: finalizers(v1alpha1.NodeMaintenanceInstigator)},
	"LifecycleInstigator":            &v1alpha1.Evacuation{ObjectMeta: finalizers(v1alpha1.LifecycleInstigator)},
	"EvictionTurnAnnotation":         &v1alpha1.Evacuation{ObjectMeta: annotated(v1alpha1.EvictionTurnAnnotation, "turn")},
	"EvictionInstigator":             &v1alpha1.Evacuation{ObjectMeta: finalizers(v1alpha1.EvictionInstigator)},
	"CordonAnnotation":               &corev1.Node{ObjectMeta: annotated(v1alpha1.CordonAnnotation, `{"wasUnschedulable":false,"holders":["m"]}`)},
	"NodeAnnotation":                 &v1alpha1.Evacuation{ObjectMeta: annotated(v1alpha1.NodeAnnotation, "n")},
	"CompleteLabel":                  &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.CompleteLabel: "true"}}},
	"EvictionAttemptAnnotation":      &v1alpha1.Evacuation{ObjectMeta: annotated(v1alpha1.EvictionAttemptAnnotation, "2026-03-01T12:00:00Z")},
	"DrainTargetsAnnotation":         &corev1.Node{ObjectMeta: annotated(v1alpha1.DrainTargetsAnnotation, "[]")},
	"DaemonSetTaint": &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule},
	}}},
	"KarpenterDoNotDisruptAnnotation": protected(v1alpha1.KarpenterDoNotDisruptAnnotation),
	"ScaleDownDisabledAnnotation":     protected(v1alpha1.ScaleDownDisabledAnnotation),
	"HandedOverAnnotation": &v1alpha1.NodeMaintenance{
		ObjectMeta: annotated(v1alpha1.HandedOverAnnotation, "{}"), Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain},
	},
	"DaemonSetDrainLabel":        &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.DaemonSetDrainLabel: "true"}}},
	"HandedOverLabel":            &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.HandedOverLabel: "true"}}},
	"HandedOverByAnnotation":     &corev1.Node{ObjectMeta: annotated(v1alpha1.HandedOverByAnnotation, "m")},
	"RebootPromiseAnnotation":    &corev1.Node{ObjectMeta: annotated(v1alpha1.RebootPromiseAnnotation, "{}")},
	"MaintenanceGate":            &corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: v1alpha1.MaintenanceGate}}}},
	"SurgeAnnotation":            &corev1.Pod{ObjectMeta: annotated(v1alpha1.SurgeAnnotation, "{}")},
	"SurgeReplacementAnnotation": &corev1.Pod{ObjectMeta: annotated(v1alpha1.SurgeReplacementAnnotation, "{}")},
	"MachineFinalizer":           &v1alpha1.Machine{ObjectMeta: finalizers(v1alpha1.MachineFinalizer)},
	"ClusterFinalizer":           &v1alpha1.Cluster{ObjectMeta: finalizers(v1alpha1.ClusterFinalizer)},
	"LockAnnotation":             &policyv1.PodDisruptionBudget{ObjectMeta: annotated(v1alpha1.LockAnnotation, "{}")},
	"NodeMaintenanceRequester":   requested("", ""),
	"WithdrawnAnnotation":        requested(v1alpha1.WithdrawnAnnotation, "2026-03-01T12:00:00Z"),
	"UnansweredAnnotation":       requested(v1alpha1.UnansweredAnnotation, "true"),
	"BackAnnotation":             &v1alpha1.DrainRecord{ObjectMeta: annotated(v1alpha1.BackAnnotation, "true")},
}

func requested(key, value string) *lifecyclev1alpha1.EvictionRequest {
	request := evictionrequest.New(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "5d2f"}})
	request.Annotations[key] = value
	return request
}

func protected(key string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: annotated(v1alpha1.CordonAnnotation, `{"wasUnschedulable":false,"holders":["m"],"protected":{"`+key+`":{}}}`)}
	node.Annotations[key] = "true"
	return node
}

var spared = map[string]string{
	"KarpenterDisruptedTaint":                  "Karpenter writes it",
	"KarpenterTerminationFinalizer":            "Karpenter writes it",
	"ToBeDeletedTaint":                         "the cluster-autoscaler writes it",
	"DeletionCandidateTaint":                   "the cluster-autoscaler writes it",
	"AllowScaleDownAnnotation":                 "people ask by it",
	"EvacuatorAnnotationPrefix":                "people register evacuators on pods",
	"DeploymentEvacuatorClass":                 "the end of such a key",
	"DaemonSetEvacuatorClass":                  "the end of such a key",
	"DeploymentSurgeResponder":                 "people name it in pods",
	"KubeletEvacuatorClass":                    "the end of such a key",
	"DrainLabel":                               "people label pods",
	"PreDrainHookAnnotationPrefix":             "people put hooks on Machines",
	"PreTerminateHookAnnotationPrefix":         "people put hooks on Machines",
	"ControlPlaneHookAnnotation":               "another controller puts it on Machines",
	"ExcludeNodeDrainingAnnotation":            "people annotate Machines",
	"ExcludeWaitForNodeVolumeDetachAnnotation": "people annotate Machines",
	"ControlPlaneLabel":                        "people label Machines",
	"MachineDrainAnnotation":                   "on an Eviction, which is never stored",
	"EvictionRequestAnnotation":                "on an Eviction of the eviction API, which is never stored",
	"OnUpgradeLabel":                           "people label pods",
	"OnUpgradeStay":                            "the value of such a label",
	"DrainLockMutex":                           "the name of a Lease, which goes as a whole",
	"MissingRightsLabel":                       "on the Lease of the leader, which goes as a whole",
	"RequestedByAnnotation":                    "on NodeMaintenances, which go as a whole",
	"GivenBackAnnotation":                      "on NodeMaintenances, which go as a whole",
	"RolloutLabel":                             "on NodeMaintenances, which go as a whole",
	"RolloutAttemptAnnotation":                 "on NodeMaintenances, which go as a whole",
	"RebootAnnotation":                         "on NodeMaintenances, which go as a whole",
	"ApproveVerb":                              "a verb of RBAC",
	"CreatedByLabel":                           "on NodeMaintenances, which go as a whole",
	"CreatedByNodeAgent":                       "the value of such a label",
	"BypassBudgetsVerb":                        "a verb of RBAC",
	"DrainOptLabel":                            "people label Clusters and Machines of other controllers",
	"BridgeHookName":                           "the name of a hook on Machines of OpenShift",
	"BridgeHookAnnotation":                     "on Machines of Cluster API, from which core/bridge takes it",
	"BridgeOwner":                              "the value of such a hook",
	"BridgeLabel":                              "on NodeMaintenances, which go as a whole",
	"BridgeMachineAnnotation":                  "on NodeMaintenances, which go as a whole",
	"BridgePausedAnnotation":                   "on NodeMaintenances, which go as a whole",
	"BridgeDrainStartAnnotation":               "on Machines of Cluster API, from which core/bridge takes it with the hook",
	"ConditionBridgeDrained":                   "on Machines of Cluster API that are being deleted, which go as a whole",
	"BootIDAnnotation":                         "on Jobs, which go with their NodeMaintenances",
	"BridgeUIDsAnnotation":                     "on NodeMaintenances, which go as a whole",
}

func finalizers(names ...string) metav1.ObjectMeta { return metav1.ObjectMeta{Finalizers: names} }

func annotated(key, value string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Annotations: map[string]string{key: value}}
}

// Whoever adds a key to the API has to say what becomes of it when Ebbtide goes.
func TestEveryKeyOfTheAPI(t *testing.T) {
	keys := constants(t)
	for name, key := range keys {
		object, borne := bearers[name]
		_, left := spared[name]
		switch {
		case borne == left:
			t.Errorf("%s (%s) has to be in bearers, if it is a trace that is removed, or in spared, with a reason", name, key)
		case borne:
			assertRemoved(t, name, key, object)
		}
	}
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(bearers)), maps.Keys(spared)) {
		if _, exists := keys[name]; !exists {
			t.Errorf("there is no constant %s in keys.go", name)
		}
	}
}

func assertRemoved(t *testing.T, name, key string, object trace.Object) {
	t.Helper()
	if !strings.Contains(marshalled(t, object), key) {
		t.Errorf("%s: the object does not bear %s", name, key)
	}
	finding, found := trace.Of(object, trace.Facts{})
	switch {
	case !found:
		t.Errorf("%s is not found on a %T", name, object)
	case finding.Delete:
	case finding.Without == nil || strings.Contains(marshalled(t, finding.Without), key):
		t.Errorf("%s is still on %+v", name, finding.Without)
	}
}

func marshalled(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func constants(t *testing.T) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join(apiFolder, "keys.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := (&types.Config{}).Check("v1alpha1", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range checked.Scope().Names() {
		if c, ok := checked.Scope().Lookup(name).(*types.Const); ok {
			found[name] = constant.StringVal(c.Val())
		}
	}
	if len(found) < 20 {
		t.Fatalf("keys.go has only %d constants, they are elsewhere", len(found))
	}
	return found
}

// All keys are in keys.go, where the test above finds them.
func TestKeysAreNowhereElse(t *testing.T) {
	paths, err := filepath.Glob(apiFolder + "/*.go")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if filepath.Base(path) != "keys.go" && strings.Contains(line, `= "ebbtide.dev/`) {
				t.Errorf("%s:%d: a key is declared here: %s", path, i+1, line)
			}
		}
	}
}

// The label of ReplicaSets is the one key of others that Ebbtide changes.
func TestTheHashOfADetachedPodIsATrace(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "detached-by-ebbtide"}}}
	assertRemoved(t, "the hash", "detached-by-ebbtide", pod)
}
