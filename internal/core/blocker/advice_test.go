package blocker_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/test/golden"
)

func atLeast(percent string, replicas int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Spec.MinAvailable = new(intstr.FromString(percent))
		b.Status.ExpectedPods, b.Status.CurrentHealthy = replicas, replicas
	}
}

func uncountable(b *policyv1.PodDisruptionBudget) {
	b.Status.Conditions = []metav1.Condition{{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
	}}
}

func of(changes ...func(*policyv1.PodDisruptionBudget)) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		for _, change := range changes {
			change(b)
		}
	}
}

func ofJob(f *known) {
	f.Pod.OwnerReferences[0].APIVersion, f.Pod.OwnerReferences[0].Kind = "batch/v1", "Job"
}

func notReady(f *known) {
	f.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

// What is suggested for a budget that refuses; test/scenario does it.
func TestBudgetThatRefusesIsPatched(t *testing.T) {
	const letOne, oneLess = `{"spec":{"minAvailable":null,"maxUnavailable":1}}`, `{"spec":{"maxUnavailable":1}}`
	alwaysAllow := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	for name, tc := range map[string]struct {
		budget func(*policyv1.PodDisruptionBudget)
		pod    func(*known)
		want   string
	}{
		"a percentage that one replica more satisfies": {budget: atLeast("50%", 1), want: letOne},
		"a percentage that needs many more":            {budget: atLeast("67%", 2), want: letOne},
		"all pods":                                     {budget: atLeast("100%", 3), want: letOne},
		"more pods than there are":                     {budget: minAvailable(5), want: letOne},
		"far more pods than are":                       {budget: minAvailable(1<<31 - 1), want: letOne},
		"a number of bare pods":                        {budget: minAvailable(3), pod: ownerless, want: `{"spec":{"minAvailable":0}}`},
		"a number of pods of a Job":                    {budget: minAvailable(3), pod: ofJob, want: `{"spec":{"minAvailable":2}}`},
		"replicas that nobody can count": {
			budget: of(maxUnavailable(0), uncountable), pod: ofJob,
			want: `{"spec":{"minAvailable":0,"maxUnavailable":null}}`,
		},
		"a pod that is not ready": {
			budget: maxUnavailable(0), pod: notReady,
			want: `{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`,
		},
		"a pod that is not ready, which nobody minds": {budget: of(maxUnavailable(0), alwaysAllow), pod: notReady, want: oneLess},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(*known) {}
			if tc.pod != nil {
				pod = tc.pod
			}
			got, _ := blocker.Of(facts(refused(v1alpha1.BlockerPDBExhausted, "The disruption budget web needs more"), budgetNamed("web", tc.budget), pod))
			golden.Message(t, got.Suggestion)
			if !strings.HasSuffix(got.Suggestion, "kubectl -n shop patch poddisruptionbudget web --type=merge -p '"+tc.want+"'") {
				t.Errorf("suggestion %s, want one to patch the budget with %s", got.Suggestion, tc.want)
			}
		})
	}
}
