package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/fault"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// world is an API server and a clock that only moves when it is told to.
type world struct {
	t     *testing.T
	api   *fault.Server
	clock *testingclock.FakeClock
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return &world{t: t, api: fault.NewServer(t, objects...), clock: testingclock.NewFakeClock(noon)}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// evacuator is one without any memory.
func (w *world) evacuator() *evacuator { return newEvacuator(w.api.Manager, w.api.Emit, w.clock) }

func (w *world) gatekeeper() *gatekeeper {
	return &gatekeeper{client: w.api.Manager, live: w.api, emit: w.api.Emit, clock: w.clock, removals: newBackoff(w.clock)}
}

// reconcile reconciles an object and returns when it is due again.
func (w *world) reconcile(r reconcile.Reconciler, object client.Object) time.Duration {
	w.t.Helper()
	result, err := r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	w.must(err)
	return result.RequeueAfter
}

// read returns what is stored of an object, and whether there is one.
func read[T client.Object](w *world, object T) (T, bool) {
	w.t.Helper()
	stored := object.DeepCopyObject().(T)
	err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(object), stored)
	w.must(client.IgnoreNotFound(err))
	return stored, err == nil
}

func (w *world) message(e *v1alpha1.Evacuation) string {
	w.t.Helper()
	stored, _ := read(w, e)
	return stored.Status.Message
}

// deletions is how often a pod was asked to go.
func (w *world) deletions() int {
	return len(slices.DeleteFunc(w.api.Writes(), func(write string) bool { return !strings.HasPrefix(write, "delete ") }))
}

// aNode suppresses DaemonSet pods up to a priority, for maintenance upgrade.
func aNode(priority int) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{
		v1alpha1.CordonAnnotation:       `{"wasUnschedulable":false,"holders":["upgrade"]}`,
		v1alpha1.DrainTargetsAnnotation: fmt.Sprintf(`[{"podPriority":%d,"podType":"DaemonSet"}]`, priority),
	}}}
}

func aMaintenance() *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "upgrade"}, Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, Reason: "OS upgrade"},
	}
}

// aPod is a pod of DaemonSet log with priority 1000.
func aPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "logging", Name: name, UID: types.UID("uid-of-" + name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", UID: "ds", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "one", Priority: new(int32(1000)), TerminationGracePeriodSeconds: new(int64(60))},
	}
}

// asked is the Evacuation of a pod in which it is our turn.
func asked(pod *corev1.Pod) *v1alpha1.Evacuation {
	e := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	e.Status.ActiveEvacuatorClass = v1alpha1.DaemonSetEvacuatorClass
	e.Status.EvacuationProgressTimestamp = &metav1.Time{Time: noon.Add(-time.Minute)}
	return e
}

// held is a pod that is held back from node one.
func held(gates ...string) *corev1.Pod {
	pod := aPod("log-held")
	pod.Spec.NodeName = ""
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"one"}}},
		}}},
	}}
	for _, gate := range gates {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
	}
	return pod
}
