package blocker_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

func TestWhichBudgetWouldRefuse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := func(name string, change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		least := intstr.FromInt32(2)
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{}},
			Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 2, DesiredHealthy: 2},
		}
		change(b)
		return b
	}
	as := func(*policyv1.PodDisruptionBudget) {}
	pod := func(ready corev1.ConditionStatus, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
			Status:     corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	serving := pod(corev1.ConditionTrue, corev1.PodRunning)
	leaving := serving.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		budgets []*policyv1.PodDisruptionBudget
		want    v1alpha1.BlockerType
		message string
	}{
		"no budget":                              {serving, nil, "", ""},
		"one that is used up":                    {serving, []*policyv1.PodDisruptionBudget{of("web", as)}, v1alpha1.BlockerPDBExhausted, "The disruption budget web needs 2 healthy pods and has 2 currently."},
		"one that allows":                        {serving, []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 })}, "", ""},
		"one that never will":                    {serving, []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 2 })}, v1alpha1.BlockerPDBUnsatisfiable, "can never allow a disruption: minAvailable 2 needs 2"},
		"one that is unknown":                    {serving, []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })}, v1alpha1.BlockerPDBExhausted, "is unknown: its status is older than its spec."},
		"two":                                    {serving, []*policyv1.PodDisruptionBudget{of("web", as), of("all", as)}, v1alpha1.BlockerMultiplePDBs, "They are all, web."},
		"a lock":                                 {serving, []*policyv1.PodDisruptionBudget{of("web", lockedNow)}, v1alpha1.BlockerPDBLocked, "is locked by user/anna until 2026-03-01T12:30:00Z"},
		"a lock that has ended":                  {serving, []*policyv1.PodDisruptionBudget{of("web", lockedBefore)}, v1alpha1.BlockerPDBExhausted, "The disruption budget web needs 2"},
		"it is not ready":                        {pod(corev1.ConditionFalse, corev1.PodRunning), []*policyv1.PodDisruptionBudget{of("web", as)}, "", ""},
		"it is not ready and neither are enough": {pod(corev1.ConditionFalse, corev1.PodRunning), []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 1 })}, v1alpha1.BlockerPDBExhausted, "needs 2 healthy pods and has 1 currently."},
		"it has not begun":                       {pod(corev1.ConditionFalse, corev1.PodPending), []*policyv1.PodDisruptionBudget{of("web", as)}, "", ""},
		"it leaves already":                      {leaving, []*policyv1.PodDisruptionBudget{of("web", as)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := blocker.Foreseen(&blocker.Facts{Now: now, Pod: test.pod, Budgets: budget.Compile(test.budgets)})
			if got.Type != test.want || found != (test.want != "") || !strings.Contains(got.Message, test.message) || found && (got.Suggestion == "" || got.PodCount != 1) {
				t.Errorf("%t %+v", found, got)
			}
		})
	}
}

func lockedNow(b *policyv1.PodDisruptionBudget) { lockUntil(b, "2026-03-01T12:30:00Z") }

func lockedBefore(b *policyv1.PodDisruptionBudget) { lockUntil(b, "2026-03-01T11:30:00Z") }

func lockUntil(b *policyv1.PodDisruptionBudget, end string) {
	b.Annotations = map[string]string{v1alpha1.LockAnnotation: `{"holder":"user/anna","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"` + end + `"}`}
}

func TestWhyThisVeryPodStays(t *testing.T) {
	t.Parallel()
	controller := true
	pod := func(labels map[string]string, kind string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: labels, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "web", Controller: &controller}}}}
	}
	said := func(kind v1alpha1.BlockerType, owner string) []v1alpha1.Blocker {
		return []v1alpha1.Blocker{{Type: kind, PodCount: 7, Message: "as it is said", Object: v1alpha1.BlockerObject{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: owner}}}
	}
	stay, skip := map[string]string{v1alpha1.OnUpgradeLabel: "stay"}, map[string]string{v1alpha1.DrainLabel: "Skip"}
	for name, test := range map[string]struct {
		said  []v1alpha1.Blocker
		pod   *corev1.Pod
		depth v1alpha1.PodType
		want  string
	}{
		"nothing is said of it":        {nil, pod(nil, "ReplicaSet"), "", ""},
		"its label asks":               {nil, pod(skip, "ReplicaSet"), "", "The pod stays, as its label cluster.x-k8s.io/drain asks."},
		"a rule skips it":              {said(v1alpha1.RetainedDrainRule, "web"), pod(nil, "ReplicaSet"), "", "as it is said"},
		"a rule skips others":          {said(v1alpha1.RetainedDrainRule, "db"), pod(nil, "ReplicaSet"), "", ""},
		"others of it are labelled":    {said(v1alpha1.RetainedDrainLabel, "web"), pod(nil, "ReplicaSet"), "", ""},
		"it stays in place":            {said(v1alpha1.RetainedInPlace, "web"), pod(stay, "ReplicaSet"), "", "The pod stays while the node is away, as its label ebbtide.dev/on-upgrade asks."},
		"others of it stay in place":   {said(v1alpha1.RetainedInPlace, "web"), pod(nil, "ReplicaSet"), "", ""},
		"nobody removes its sort":      {said(v1alpha1.RetainedNoEvacuator, "web"), pod(nil, "ReplicaSet"), "", ""},
		"the drain ends before it":     {nil, pod(nil, "DaemonSet"), v1alpha1.PodTypeDefault, "The pod is of type DaemonSet, and spec.drainDepth ends before."},
		"the drain does not end there": {nil, pod(nil, "DaemonSet"), v1alpha1.PodTypeStatic, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, stays := blocker.RetainedOf(test.said, test.pod, test.depth)
			if got.Message != test.want || stays != (test.want != "") || stays && got.PodCount != 1 {
				t.Errorf("%t %+v, want %q", stays, got, test.want)
			}
		})
	}
}
