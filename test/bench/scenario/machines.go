package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// Machines deletes 20 Machines of a Cluster at once, with 600 pods that nothing
// holds back. The peers drain the nodes, all at once; for Ebbtide, which also cleans
// up after the drain, "declared" is when the Machines are gone.
func Machines(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	work := lab.Work{Nodes: 20, Apps: 10, Pods: 60, Machines: true}
	return report.Sheet{
		Scenario: "machines",
		Unit:     "s",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 1.3, TimesOracle: true, Beats: lab.ClusterAPI, Margin: 3},
		Runs:     race(ctx, l, options.of(report.Oracle, lab.ClusterAPI, report.Ebbtide), work),
	}
}
