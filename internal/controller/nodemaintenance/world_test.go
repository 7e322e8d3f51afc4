package nodemaintenance

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
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

// manager is a reconciler without any memory.
func (w *world) manager() *reconciler {
	r := newReconciler(w.api.Manager, w.api.Emit, w.clock, newMetrics(prometheus.NewRegistry()))
	r.namespace = ownNamespace
	return r
}

func (w *world) get(object client.Object, namespace, name string) {
	w.t.Helper()
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		w.t.Fatalf("get %T %s: %v", object, name, err)
	}
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	var node corev1.Node
	w.get(&node, "", name)
	return &node
}

func (w *world) maintenance(name string) *v1alpha1.NodeMaintenance {
	w.t.Helper()
	var maintenance v1alpha1.NodeMaintenance
	w.get(&maintenance, "", name)
	return &maintenance
}

func (w *world) evacuations() []v1alpha1.Evacuation {
	w.t.Helper()
	var list v1alpha1.EvacuationList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatalf("list evacuations: %v", err)
	}
	return list.Items
}

func aNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"pool": "old"},
	}}
}

func aPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// ownNamespace is where Ebbtide runs.
const ownNamespace = "ebbtide-system"

// aRule retains the pods of an application, on all nodes under maintenance.
func aRule(namespace, name, app string) *v1alpha1.MachineDrainRule {
	return &v1alpha1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MachineDrainRuleSpec{
			Drain: v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorSkip},
			Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: &metav1.LabelSelector{}}},
			Pods: []v1alpha1.MachineDrainRulePodSelector{{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			}},
		},
	}
}

// aMaintenance drains the nodes of the pool.
func aMaintenance(name, pool string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage: v1alpha1.StageDrain,
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pool},
				}},
			}}},
		},
	}
}
