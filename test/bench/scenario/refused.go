package scenario

import (
	"context"
	"errors"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// Refused drains 50 nodes of free pods with and without 600 pods whose Evacuations
// a quota refuses for ever, on the nodes that come first by name: whether a write
// that is refused costs others. They are refused in the maintenance of the free pods
// at first, and then in neighbours: each node has a maintenance of its own. It
// compares Ebbtide with itself, and the worse of the two counts.
func Refused(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	runs := options.ebbtideOnce().collect(func(_ string, run *report.Run) error {
		run.Detail = map[string]float64{}
		together, apart := fleetWork, fleetWork
		apart.Apart = true
		return errors.Join(besideRefused(ctx, l, together, run), besideRefused(ctx, l, apart, run))
	})
	return report.Sheet{
		Scenario: "refused",
		Unit:     "× alone",
		Quantile: 1,
		Goal:     report.Goal{AtMost: 1.2},
		Runs:     runs,
	}
}

func besideRefused(ctx context.Context, l *lab.Lab, work lab.Work, run *report.Run) error {
	alone, err := drain(ctx, l, run.Contender, work)
	if err != nil {
		return err
	}
	hindering := work
	hindering.Refused = 600
	beside, err := hindered(ctx, l, run.Contender, hindering)
	if err != nil {
		return err
	}
	way := "Together"
	if work.Apart {
		way = "Apart"
	}
	run.Values = append(run.Values, beside.took.Seconds()/alone.gone.Seconds())
	run.Detail["seconds"+way+"Alone"], run.Detail["cpuSeconds"+way+"Alone"] = alone.gone.Seconds(), alone.cpu.Seconds()
	run.Detail["seconds"+way+"WithRefused"], run.Detail["cpuSeconds"+way+"WithRefused"] = beside.took.Seconds(), beside.cpu.Seconds()
	return nil
}
