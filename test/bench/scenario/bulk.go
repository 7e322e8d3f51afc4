package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// bulkWork has 99 nodes of 20 pods each, with a NodeMaintenance for each node.
var bulkWork = lab.Work{Nodes: 99, Pods: 1980, Apart: true}

// Bulk drains 99 nodes at once by a NodeMaintenance each, beside the oracle, which evicts only.
func Bulk(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	return report.Sheet{
		Scenario: "bulk",
		Unit:     "s",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 1.3, TimesOracle: true},
		Runs:     race(ctx, l, options.of(report.Oracle, report.Ebbtide), bulkWork),
	}
}
