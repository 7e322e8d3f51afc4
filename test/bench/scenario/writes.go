package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// Writes counts, in the API server's audit log, what a contender writes for
// each pod of an unhindered drain, from the order until it has tidied up.
func Writes(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	once := options
	once.Repeat = 1
	runs := once.collect(func(contender string, run *report.Run) error {
		finish, err := drain(ctx, l, contender, freeWork)
		if err != nil {
			return err
		}
		run.Detail = finish.writesPer(float64(freeWork.Pods))
		run.Values = append(run.Values, sum(run.Detail))
		return nil
	})
	return report.Sheet{
		Scenario: "writes",
		Unit:     "writes/pod",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 3.5},
		Runs:     runs,
	}
}

// writesPer are the writes for each pod, by what was written.
func (f finish) writesPer(pods float64) map[string]float64 {
	per := map[string]float64{}
	for what, count := range f.writes {
		per[what] = float64(count) / pods
	}
	return per
}

func sum(values map[string]float64) float64 {
	total := 0.0
	for _, value := range values {
		total += value
	}
	return total
}
