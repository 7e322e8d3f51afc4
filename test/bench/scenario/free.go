package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// freeWork is a node full of pods that nothing holds back.
var freeWork = lab.Work{Pods: 100}

// Free drains a node of 100 pods without a budget: what evicting costs.
func Free(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	return report.Sheet{
		Scenario: "free",
		Unit:     "s",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 1.2, TimesOracle: true, Beats: lab.Kubectl, Margin: 1 / 1.3},
		Runs:     race(ctx, l, options, freeWork),
	}
}
