package preflight_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// What becomes of pods of Deployments that surge.
var fatesBySurge = map[string]fate{
	"a replacement fits when another pod has moved": {
		func(w *world) {
			w.pod("one", "api-0", of("ReplicaSet", "api"), labelled(beside, "web"))
			w.deployment("api")
			w.replicas("web", "one")
		},
		[]string{"Leaves", "1 api-0 Surge Leaves -> three", "1 web-0 Evict Leaves -> two"},
	},
	"whether a replacement fits is unknown": {
		func(w *world) {
			pod := w.pod("one", "web-0", of("ReplicaSet", "web"))
			pod.Spec.SchedulerName = "mine"
			w.deployment("web")
		},
		[]string{
			"Unknown",
			"1 web-0 Surge Unknown -> -",
		},
	},
	"a deadline deletes a pod whose replacement fits nowhere": {
		func(w *world) {
			w.free = map[string]int{}
			w.drain.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(morning.Add(3600e9)), OnDeadline: v1alpha1.DeadlineDelete}
			w.replicas("web", "one")
			w.deployment("web")
		},
		[]string{"Leaves", "1 web-0 Delete Leaves -> -"},
	},
	"it waits already for a replacement that the scheduler puts nowhere": {
		func(w *world) {
			pod := w.pod("one", "web-0")
			pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: fmt.Sprintf(`{"pod":%q,"deployment":{"name":"web","uid":"1"},"hash":"1"}`, pod.UID)}
			asked := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, []v1alpha1.Evacuator{{EvacuatorClass: v1alpha1.DeploymentEvacuatorClass}})
			asked.Status.ActiveEvacuatorClass = v1alpha1.DeploymentEvacuatorClass
			asked.Status.EvacuationProgressTimestamp = &metav1.Time{Time: morning}
			meta.SetStatusCondition(&asked.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionReplacementUnschedulable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnschedulable,
			})
			w.World.Pods["one"][0].Evacuation = asked
		},
		[]string{"Blocked", "1 web-0 Surge Blocked ReplacementUnschedulable"},
	},
}

// The budget of a pod whose replacement fits nowhere is not what holds it up.
func TestBudgetIsNotBlamedForPodsWithoutRoom(t *testing.T) {
	w := newWorld("one", "two", "three")
	w.free = map[string]int{}
	w.replicas("web", "one", "two")
	w.deployment("web")
	w.budget("web", "web", atMost(0), 2, 2)
	for _, b := range w.forecast().Budgets {
		if b.Effect != preflight.BudgetNever || b.Suggestion != "" {
			t.Errorf("budget %s %s its pods: %s %s", b.Name, b.Effect, b.Why, b.Suggestion)
		}
	}
}
