package blocker_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
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
func TestWhatHelpsAgainstABudget(t *testing.T) {
	const patch = "kubectl -n shop patch poddisruptionbudget web --type=merge -p "
	const letOne = patch + `'{"spec":{"minAvailable":null,"maxUnavailable":1}}'`
	alwaysAllow := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	for name, tc := range map[string]struct {
		budget func(*policyv1.PodDisruptionBudget)
		pod    func(*known)
		want   string
	}{
		"a percentage that one replica more satisfies": {
			budget: atLeast("50%", 1), want: "Run at least 2 replicas, or let one pod be unavailable: " + letOne,
		},
		"a percentage that needs many more": {
			budget: atLeast("67%", 2), want: "Run at least 4 replicas, or let one pod be unavailable: " + letOne,
		},
		"all pods":                  {budget: atLeast("100%", 3), want: "Let one pod be unavailable: " + letOne},
		"more pods than there are":  {budget: minAvailable(5), want: "Run at least 6 replicas, or let one pod be unavailable: " + letOne},
		"far more pods than are":    {budget: minAvailable(1<<31 - 1), want: "Let one pod be unavailable: " + letOne},
		"a number of bare pods":     {budget: minAvailable(3), pod: ownerless, want: "Nobody replaces such pods. Run others in their place, or let them go: " + patch + `'{"spec":{"minAvailable":0}}'`},
		"a number of pods of a Job": {budget: minAvailable(3), pod: ofJob, want: "Run at least 4 replicas, or let one pod be unavailable: " + patch + `'{"spec":{"minAvailable":2}}'`},
		"replicas that nobody can count": {
			budget: of(maxUnavailable(0), uncountable), pod: ofJob,
			want: "Nobody knows how many replicas there are to be of its pods, as with those of a Job. Count pods: " +
				patch + `'{"spec":{"minAvailable":0,"maxUnavailable":null}}'`,
		},
		"a pod that is not ready": {
			budget: maxUnavailable(0), pod: notReady,
			want: "The pod is not ready itself. Get it ready, or let pods go that are not: " + patch + `'{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}'`,
		},
		"a pod that is not ready, which nobody minds": {
			budget: of(maxUnavailable(0), alwaysAllow), pod: notReady, want: "Let one pod be unavailable: " + patch + `'{"spec":{"maxUnavailable":1}}'`,
		},
		"a pod that is ready": {
			budget: maxUnavailable(0), pod: func(f *known) {
				notReady(f)
				f.Pod.Status.Conditions[0].Status = corev1.ConditionTrue
			},
			want: "Let one pod be unavailable: " + patch + `'{"spec":{"maxUnavailable":1}}'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(*known) {}
			if tc.pod != nil {
				pod = tc.pod
			}
			got, _ := blocker.Of(facts(refused(v1alpha1.BlockerPDBExhausted, "The disruption budget web needs more"), budgetNamed("web", tc.budget), pod))
			if got.Suggestion != tc.want {
				t.Errorf("suggestion is\n%s\nwant\n%s", got.Suggestion, tc.want)
			}
		})
	}
}
