package preflight_test

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// counted gives a budget its numbers.
func counted(b *policyv1.PodDisruptionBudget, healthy, desired, allowed int32) *policyv1.PodDisruptionBudget {
	b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.DisruptionsAllowed = healthy, desired, allowed
	return b
}

// set is the StatefulSet of an app.
func (w *world) set(app string, policy appsv1.PodManagementPolicyType) {
	w.Owners.StatefulSets = append(w.Owners.StatefulSets, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app, UID: types.UID("StatefulSet" + app)},
		Spec:       appsv1.StatefulSetSpec{PodManagementPolicy: policy},
	})
}

func db(w *world, changes ...change) {
	for _, name := range []string{"db-0", "db-1"} {
		w.pod("one", name, append([]change{of("StatefulSet", "db")}, changes...)...)
	}
}

// What becomes of pods where it depends on a number, or on one more condition.
var fatesInDetail = map[string]fate{
	"a budget that needs nobody says no of a pod that is not ready, as it has none to spare": {
		func(w *world) {
			w.pod("one", "web-0", of("ReplicaSet", "web"), unready)
			counted(w.budget("web", "web", atLeast(0), 1, 0), 0, 0, 0)
		},
		[]string{"Blocked", "1 web-0 Evict Blocked PDBExhausted"},
	},
	"only pods that are not ready go always": {
		func(w *world) {
			w.replicas("web", "one")
			w.pod("one", "web-1", of("ReplicaSet", "web"), unready)
			counted(w.budget("web", "web", atMost(0), 2, 2), 1, 2, 0).Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		},
		[]string{"Blocked", "1 web-0 Evict Blocked PDBUnsatisfiable", "1 web-1 Evict Leaves -> two"},
	},
	"a budget of a Job that nobody can count allows nothing, whoever leaves": {
		func(w *world) {
			w.pod("one", "batch-0", of("Job", "batch"), pending)
			w.pod("one", "batch-1", of("Job", "batch"))
			counted(w.budget("batch", "batch", atMost(1), 2, 1), 2, 1, 0).Status.Conditions = []metav1.Condition{
				{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason},
			}
		},
		[]string{"Blocked", "1 batch-0 Evict Leaves -> two", "1 batch-1 Evict Blocked PDBExhausted"},
	},
	"a pod that is not ready costs its budget nothing": {
		func(w *world) {
			w.free = map[string]int{}
			w.pod("one", "web-0", of("ReplicaSet", "web"), unready)
			w.pod("one", "web-1", of("ReplicaSet", "web"))
			counted(w.budget("web", "web", atLeast(1), 3, 1), 2, 1, 1)
		},
		[]string{
			"Leaves",
			"1 web-0 Evict Leaves -> -", "1 web-1 Evict Leaves -> -",
		},
	},
	"a pod in place of one that is not ready is no help to its budget": {
		func(w *world) {
			w.pod("one", "web-0", of("ReplicaSet", "web"), unready)
			w.pod("one", "web-1", of("ReplicaSet", "web"))
			counted(w.budget("web", "web", atLeast(2), 3, 2), 2, 2, 0)
		},
		[]string{
			"Blocked",
			"1 web-0 Evict MayBeBlocked PDBExhausted -> two", "1 web-1 Evict Blocked PDBExhausted",
		},
	},
	"on a node that is not Ready no pod is to blame": {
		func(w *world) {
			w.World.Nodes[0].Status.Conditions[0].Status = corev1.ConditionFalse
			db(w, unready)
		},
		[]string{"Leaves", "1 db-0 Evict Leaves -> two", "1 db-1 Evict Leaves -> three"},
	},
	"a StatefulSet waits for a pod that runs and is not ready": {
		func(w *world) { db(w, unready) },
		[]string{
			"Leaves",
			"1 db-0 Evict Leaves -> two", "1 db-1 Evict Leaves -> -",
		},
	},
	"a StatefulSet that makes its pods in parallel waits for none": {
		func(w *world) {
			w.free = map[string]int{}
			w.set("db", appsv1.ParallelPodManagement)
			db(w)
		},
		[]string{
			"Leaves",
			"1 db-0 Evict Leaves -> -", "1 db-1 Evict Leaves -> -",
		},
	},
	"there is room for one more pod of two Deployments": {
		func(w *world) {
			w.free = map[string]int{"two": 1}
			for _, app := range []string{"web", "api"} {
				w.replicas(app, "one")
				w.deployment(app)
				w.budget(app, app, atMost(0), 1, 1)
			}
		},
		[]string{
			"Blocked",
			"1 api-0 Surge MayBeBlocked ReplacementUnschedulable -> two", "1 web-0 Surge MayBeBlocked ReplacementUnschedulable",
		},
	},
	"others take the room that a budget needs, though by name its pods are neither first nor last": {
		func(w *world) {
			w.free = map[string]int{"two": 2}
			w.replicas("api", "one")
			w.replicas("middle", "one", "one")
			w.replicas("web", "one")
			w.budget("middle", "middle", atLeast(1), 2, 1)
		},
		[]string{
			"MayBeBlocked",
			"1 api-0 Evict Leaves -> two", "1 middle-0 Evict MayBeBlocked PDBExhausted -> two",
			"1 middle-1 Evict MayBeBlocked PDBExhausted -> -",
			"1 web-0 Evict Leaves -> -",
		},
	},
	"a Job that may not fail once more makes no other pod": {
		func(w *world) {
			w.pod("one", "batch-1", of("Job", "batch"), tracked)
			w.Owners.Jobs = []*batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Name: "batch", UID: "Jobbatch"}, Spec: batchv1.JobSpec{BackoffLimit: new(int32(0))}}}
		},
		[]string{
			"Leaves",
			"1 batch-1 Evict Leaves -> -",
		},
	},
	"pods that wait for the scheduler take room, unless it has given them up": {
		func(w *world) {
			w.free = map[string]int{"two": 2}
			given := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "given-up", UID: "given-up"}, Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}},
			}}
			w.Unscheduled = []*corev1.Pod{given, {ObjectMeta: metav1.ObjectMeta{Name: "new", UID: "new"}}}
			w.replicas("web", "one", "one")
		},
		[]string{
			"Leaves",
			"1 web-0 Evict Leaves -> two", "1 web-1 Evict Leaves -> -",
		},
	},
}
