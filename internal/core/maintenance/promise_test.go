package maintenance_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// What was promised stays so while the record is changed that says it: a node that
// reboots must not seem to be waited for again.
func TestADrainedNodeStaysSoWhileItsRecordChanges(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(w *world, m *v1alpha1.NodeMaintenance, pod *corev1.Pod){
		"another reason":  func(_ *world, m *v1alpha1.NodeMaintenance, _ *corev1.Pod) { m.Spec.Reason = "kernel 7.3" },
		"another timeout": func(_ *world, m *v1alpha1.NodeMaintenance, _ *corev1.Pod) { m.Spec.InPlace.LockTimeoutSeconds = 60 },
		"the pod is gone": func(w *world, _ *v1alpha1.NodeMaintenance, pod *corev1.Pod) { w.remove(pod.UID) },
		"another pod comes": func(w *world, _ *v1alpha1.NodeMaintenance, _ *corev1.Pod) {
			w.run("one", 1, 0, stays, label("app", "db"))
		},
		"the budget goes": func(w *world, _ *v1alpha1.NodeMaintenance, _ *corev1.Pod) { w.budgets = nil },
		"it is handed over": func(_ *world, m *v1alpha1.NodeMaintenance, _ *corev1.Pod) {
			m.Spec.Stage = v1alpha1.StageComplete
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, m, pod := rebooting(t)
			next := inPlace(w.maintenance("next", drain, nil, "one"), 300)
			w.pass()
			w.take("one", "db")
			w.pass()
			happens(w, m, pod)
			before := w.records["one"].Generation
			for range 3 {
				w.pass()
				if !isTrue(next.Status.Conditions, v1alpha1.ConditionDrained) || nodeCondition(w.find("one"), v1alpha1.NodeDrained).Status != corev1.ConditionTrue {
					t.Fatalf("the node is %q, want it Drained", retainedLine(next))
				}
			}
			if w.records["one"].Generation == before {
				t.Error("the record has not changed")
			}
		})
	}
}
