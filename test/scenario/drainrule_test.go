package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// rulesNamespace is where Ebbtide runs.
var rulesNamespace = cluster.Account.Namespace

// rule creates a MachineDrainRule for the pods of an application on one node. It
// is deleted with the scenario.
func (w *world) rule(node, app string, drain v1alpha1.MachineDrainRuleDrain, changes ...func(*v1alpha1.MachineDrainRule)) *v1alpha1.MachineDrainRule {
	w.t.Helper()
	rule := &v1alpha1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: rulesNamespace, Name: w.name(app)},
		Spec: v1alpha1.MachineDrainRuleSpec{
			Drain: drain,
			Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: labelSelector(corev1.LabelHostname, node)}},
			Pods:  []v1alpha1.MachineDrainRulePodSelector{{Selector: labelSelector("app", app)}},
		},
	}
	for _, change := range changes {
		change(rule)
	}
	w.create(rule)
	w.t.Cleanup(func() { w.must("delete "+rule.Name, client.IgnoreNotFound(w.client.Delete(w.ctx, rule))) })
	return rule
}

func labelSelector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func ordered(order int32) v1alpha1.MachineDrainRuleDrain {
	return v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorDrain, Order: &order}
}

func of(app string) map[string]string { return map[string]string{"app": app} }

// Story 1 of machine-drain-rules: Portworx leaves after all others, and what
// depends on it leaves before them.
func TestRulesSayInWhichOrderPodsLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.rule(node, "portworx", ordered(100))
	w.rule(node, "cache", ordered(-5))
	first := w.pods(node, pod{name: "cache-1", labels: of("cache")}, pod{name: "cache-2", labels: of("cache"), held: true})
	second := w.pods(node, pod{name: "web-1"}, pod{name: "web-2", held: true})
	third := w.pods(node, pod{name: "portworx-1", labels: of("portworx")}, pod{name: "portworx-2", labels: of("portworx")})
	departures := w.watchDepartures(first, second, third)

	w.maintain("upgrade", v1alpha1.StageDrain, []string{node})

	w.awaitPod("cache-2", "terminating", terminating)
	w.awaitMessages(map[string]map[string]string{"upgrade": {
		node: "Evacuating. Pods of order 0 and later wait until those of order -5 are gone.",
	}})
	w.release("cache-2")
	w.awaitPod("web-2", "terminating", terminating)
	w.awaitMessages(map[string]map[string]string{"upgrade": {
		node: "Evacuating. Pods of order 100 and later wait until those of order 0 are gone.",
	}})
	w.assertNotDrained("upgrade")
	w.release("web-2")
	w.awaitDrained("upgrade")
	departures.assertInOrder()
}

func running(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning
}

// finish ends the containers of a pod.
func (w *world) finish(name string) {
	w.t.Helper()
	finished := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
	w.must("finish "+name, w.client.Status().Patch(w.ctx, finished, patch))
}

// labelNamespace sets a label that is named like the namespace of this world.
func (w *world) labelNamespace(value string) {
	w.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+w.ns+`":`+value+`}}}`))
	w.must("label namespace "+w.ns, w.client.Patch(w.ctx, namespace, patch))
}
