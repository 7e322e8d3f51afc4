package scenario

import (
	"context"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// Fleet drains 50 nodes at once, with 1,000 pods of ten Deployments, of each of
// which ten pods may be unavailable: what draining together gains. It is taken
// once and without Cluster API, whose passes over 50 nodes at 20 requests per
// second take minutes.
func Fleet(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	work := lab.Work{
		Nodes:  50,
		Apps:   10,
		Pods:   100,
		Budget: &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(10))},
	}
	once := options
	once.Repeat = 1
	once.Contenders = slices.DeleteFunc(slices.Clone(options.Contenders), func(name string) bool {
		return name == lab.ClusterAPI
	})
	return report.Sheet{
		Scenario: "fleet",
		Unit:     "s",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 1.5, TimesOracle: true, Beats: lab.Kubectl, Margin: 3},
		Runs:     race(ctx, l, once, work),
	}
}
