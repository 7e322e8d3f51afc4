package scenario

import (
	"context"
	"slices"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// tide are ten Deployments that leave a node one after the other.
var tide = lab.Work{Apps: 10, Pods: 10, InTurn: true, Machines: true}

// Waves drains a node in ten drain orders: how long nobody leaves because the
// next order has not begun. Only those who know orders take part, Ebbtide also by
// a NodeMaintenance. Who has a pod leave before its turn has failed.
func Waves(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	orderly := options.of(lab.ClusterAPI, report.Ebbtide)
	if slices.Contains(orderly.Contenders, report.Ebbtide) {
		orderly.Contenders = append(orderly.Contenders, report.Maintenance)
	}
	runs := orderly.collect(func(contender string, run *report.Run) error {
		finish, err := drain(ctx, l, contender, tide)
		if err != nil {
			return err
		}
		for _, gap := range finish.gaps {
			run.Values = append(run.Values, gap.Seconds())
		}
		run.Declared = append(run.Declared, finish.declared.Seconds())
		run.Detail = map[string]float64{
			"p50":     report.Quantile(run.Values, 0.5),
			"seconds": finish.gone.Seconds(),
		}
		return nil
	})
	return report.Sheet{
		Scenario: "waves",
		Unit:     "s",
		Quantile: 1,
		Goal:     report.Goal{AtMost: 0.3},
		Runs:     runs,
	}
}
