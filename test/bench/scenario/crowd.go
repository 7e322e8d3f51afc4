package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/audit"
	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// crowdWork are 100 nodes with a few pods each, each under a maintenance of its own.
var crowdWork = lab.Work{Nodes: 100, Pods: 300, Apart: true}

// Crowd creates 100 maintenances of one node each at once and takes the time until
// the last node is cordoned: until then pods that leave one node are scheduled to
// another that is about to be drained.
func Crowd(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	return report.Sheet{
		Scenario: "crowd",
		Unit:     "s",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 2},
		Runs: options.of(report.Ebbtide).collect(func(contender string, run *report.Run) error {
			return crowd(ctx, l, contender, run)
		}),
	}
}

func crowd(ctx context.Context, l *lab.Lab, name string, run *report.Run) error {
	var order abandoned
	events, err := stage(ctx, l, cast{name, crowdWork}, func(contender lab.Contender, load *lab.Load) error {
		order.reached = func(ctx context.Context) error { return l.UntilCordoned(ctx, load) }
		return order.give(ctx, l, contender, load)
	})
	if err != nil {
		return err
	}
	run.Values = append(run.Values, order.took.Seconds())
	run.CPU = append(run.CPU, order.cpu.Seconds())
	if asked := audit.First(events, report.Ebbtide, "create evacuations"); !asked.IsZero() {
		run.Detail = map[string]float64{"secondsUntilFirstEvacuation": asked.Sub(order.began).Seconds()}
	}
	return nil
}
