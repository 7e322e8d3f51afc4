package blocker_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestForeseenNamesBudgetThatWillRefuse(t *testing.T) {
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
	}{
		"no budget":                              {serving, nil, ""},
		"one that is used up":                    {serving, []*policyv1.PodDisruptionBudget{of("web", as)}, v1alpha1.BlockerPDBExhausted},
		"one that allows":                        {serving, []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 })}, ""},
		"one that never will":                    {serving, []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 2 })}, v1alpha1.BlockerPDBUnsatisfiable},
		"one that is unknown":                    {serving, []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })}, v1alpha1.BlockerPDBExhausted},
		"two":                                    {serving, []*policyv1.PodDisruptionBudget{of("web", as), of("all", as)}, v1alpha1.BlockerMultiplePDBs},
		"a lock":                                 {serving, []*policyv1.PodDisruptionBudget{of("web", lockedNow)}, v1alpha1.BlockerPDBLocked},
		"a lock that has ended":                  {serving, []*policyv1.PodDisruptionBudget{of("web", lockedBefore)}, v1alpha1.BlockerPDBExhausted},
		"it is not ready":                        {pod(corev1.ConditionFalse, corev1.PodRunning), []*policyv1.PodDisruptionBudget{of("web", as)}, ""},
		"it is not ready and neither are enough": {pod(corev1.ConditionFalse, corev1.PodRunning), []*policyv1.PodDisruptionBudget{of("web", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 1 })}, v1alpha1.BlockerPDBExhausted},
		"it has not begun":                       {pod(corev1.ConditionFalse, corev1.PodPending), []*policyv1.PodDisruptionBudget{of("web", as)}, ""},
		"it leaves already":                      {leaving, []*policyv1.PodDisruptionBudget{of("web", as)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := blocker.Foreseen(&blocker.Facts{Now: now, Pod: test.pod, Budgets: budget.Compile(test.budgets)})
			golden.Message(t, string(got.Type), got.Message)
			if got.Type != test.want || found != (test.want != "") || found && (got.Suggestion == "" || got.PodCount != 1) {
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

func TestRetainedHasAReasonForEachPod(t *testing.T) {
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
		stays bool
	}{
		"nothing is said of it":        {nil, pod(nil, "ReplicaSet"), "", false},
		"its label asks":               {nil, pod(skip, "ReplicaSet"), "", true},
		"a rule skips it":              {said(v1alpha1.RetainedDrainRule, "web"), pod(nil, "ReplicaSet"), "", true},
		"a rule skips others":          {said(v1alpha1.RetainedDrainRule, "db"), pod(nil, "ReplicaSet"), "", false},
		"others of it are labelled":    {said(v1alpha1.RetainedDrainLabel, "web"), pod(nil, "ReplicaSet"), "", false},
		"it stays in place":            {said(v1alpha1.RetainedInPlace, "web"), pod(stay, "ReplicaSet"), "", true},
		"others of it stay in place":   {said(v1alpha1.RetainedInPlace, "web"), pod(nil, "ReplicaSet"), "", false},
		"nobody removes its sort":      {said(v1alpha1.RetainedNoEvacuator, "web"), pod(nil, "ReplicaSet"), "", false},
		"the drain ends before it":     {nil, pod(nil, "DaemonSet"), v1alpha1.PodTypeDefault, true},
		"the drain does not end there": {nil, pod(nil, "DaemonSet"), v1alpha1.PodTypeStatic, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, stays := blocker.RetainedOf(test.said, test.pod, test.depth)
			golden.Message(t, got.Message)
			if stays != test.stays || stays && got.PodCount != 1 {
				t.Errorf("%t %+v, want %t", stays, got, test.stays)
			}
		})
	}
}
