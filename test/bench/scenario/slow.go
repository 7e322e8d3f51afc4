package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// slowWork are the pods that are measured, and slowPods how many there are beside them whose
// requests a webhook holds for 9 s and then refuses.
var slowWork = lab.Work{Nodes: 50, Pods: 500}

const slowPods = 500

// Slow drains nodes with and without pods of another namespace whose evictions or Evacuations
// hang, by one maintenance and by one for each node: whether a slow neighbour costs others.
// It compares Ebbtide with itself, and the worst counts.
func Slow(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	runs := options.ebbtideOnce().collect(func(_ string, run *report.Run) error {
		run.Detail = map[string]float64{}
		for _, apart := range []bool{false, true} {
			if err := besideSlow(ctx, l, apart, run); err != nil {
				return err
			}
		}
		return nil
	})
	return report.Sheet{
		Scenario: "slow",
		Unit:     "× alone",
		Quantile: 1,
		Goal:     report.Goal{AtMost: 1.5},
		Runs:     runs,
	}
}

func besideSlow(ctx context.Context, l *lab.Lab, apart bool, run *report.Run) error {
	work, way := slowWork, "Together"
	if work.Apart = apart; apart {
		way = "Apart"
	}
	alone, err := drain(ctx, l, run.Contender, work)
	if err != nil {
		return err
	}
	run.Detail["seconds"+way+"Alone"] = alone.gone.Seconds()
	for name, slow := range map[string]lab.Slow{"Evictions": lab.SlowEvictions, "Evacuations": lab.SlowEvacuations} {
		work.Refused, work.Slow = slowPods, slow
		beside, err := hindered(ctx, l, run.Contender, work)
		if err != nil {
			return err
		}
		run.Values = append(run.Values, beside.took.Seconds()/alone.gone.Seconds())
		run.Detail["seconds"+way+"WithSlow"+name] = beside.took.Seconds()
	}
	return nil
}
