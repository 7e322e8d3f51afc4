package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// slowWork are the pods that are measured, slowSurges those of them that surge, and slowPods
// how many there are beside them whose requests a webhook holds for 9 s and then refuses.
var (
	slowWork   = lab.Work{Nodes: 50, Pods: 500}
	slowSurges = lab.Work{Nodes: 50, Apps: 50, Pods: 2, Surge: 2}
)

const slowPods = 500

// Slow drains nodes with and without pods of another namespace whose evictions, Evacuations or
// surges hang, by one maintenance and by one for each node: whether a slow neighbour costs
// others. It compares Ebbtide with itself, and the worst counts.
func Slow(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	runs := options.ebbtideOnce().collect(func(_ string, run *report.Run) error {
		run.Detail = map[string]float64{}
		for _, apart := range []bool{false, true} {
			for _, one := range slowedWork(apart) {
				if err := besideSlow(ctx, l, one, run); err != nil {
					return err
				}
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

// neighbours are the names of what is slow.
var neighbours = map[lab.Slow]string{lab.SlowEvictions: "Evictions", lab.SlowEvacuations: "Evacuations", lab.SlowSurges: "Surges"}

// slowedWork is what is measured with all nodes in one maintenance, or apart.
func slowedWork(apart bool) []slowed {
	work, surges, way := slowWork, slowSurges, "Together"
	if work.Apart, surges.Apart = apart, apart; apart {
		way = "Apart"
	}
	return []slowed{
		{way, work, []lab.Slow{lab.SlowEvictions, lab.SlowEvacuations}},
		{way + "Surges", surges, []lab.Slow{lab.SlowSurges}},
	}
}

// slowed is work that is measured alone and beside what is slow.
type slowed struct {
	name string
	work lab.Work
	slow []lab.Slow
}

func besideSlow(ctx context.Context, l *lab.Lab, one slowed, run *report.Run) error {
	alone, err := drain(ctx, l, run.Contender, one.work)
	if err != nil {
		return err
	}
	run.Detail["seconds"+one.name+"Alone"], run.Detail["cpuSeconds"+one.name+"Alone"] = alone.gone.Seconds(), alone.cpu.Seconds()
	for _, slow := range one.slow {
		work := one.work
		work.Refused, work.Slow = slowPods, slow
		beside, err := hindered(ctx, l, run.Contender, work)
		if err != nil {
			return err
		}
		run.Values = append(run.Values, beside.took.Seconds()/alone.gone.Seconds())
		name := one.name + "WithSlow" + neighbours[slow]
		run.Detail["seconds"+name], run.Detail["cpuSeconds"+name] = beside.took.Seconds(), beside.cpu.Seconds()
	}
	return nil
}
