package scenario

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// Budget drains half of a Deployment of 120 pods, of which six may be
// unavailable: what waiting for a budget costs.
func Budget(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	work := lab.Work{
		Pods:   60,
		Others: 60,
		Budget: &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(6))},
	}
	return report.Sheet{
		Scenario: "budget",
		Unit:     "s",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 1.3, TimesOracle: true, Beats: lab.Kubectl},
		Runs:     race(ctx, l, options, work),
	}
}
