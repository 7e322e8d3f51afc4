package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// Refused drains 50 nodes of free pods with and without 600 pods whose Evacuations
// a quota refuses for ever, on the nodes that come first by name: whether a write
// that is refused costs others. They are refused in the maintenance of the free pods
// at first, and then in neighbours: each node has a maintenance of its own. It
// compares Ebbtide with itself, and the worse of the two counts.
func Refused(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	runs := options.ebbtideOnce().collect(func(contender string, run *report.Run) error {
		run.Detail = map[string]float64{}
		for _, way := range []struct {
			name  string
			apart bool
		}{{"Together", false}, {"Apart", true}} {
			work := fleetWork
			work.Apart = way.apart
			alone, err := drain(ctx, l, contender, work)
			if err != nil {
				return err
			}
			work.Refused = 600
			beside, err := hindered(ctx, l, contender, work)
			if err != nil {
				return err
			}
			run.Detail["seconds"+way.name+"Alone"] = alone.gone.Seconds()
			run.Detail["seconds"+way.name+"WithRefused"] = beside.Seconds()
			run.Values = append(run.Values, beside.Seconds()/alone.gone.Seconds())
		}
		return nil
	})
	return report.Sheet{
		Scenario: "refused",
		Unit:     "× alone",
		Quantile: 1,
		Goal:     report.Goal{AtMost: 1.2},
		Runs:     runs,
	}
}
