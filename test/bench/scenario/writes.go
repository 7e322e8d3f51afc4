package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// Writes counts, in the API server's audit log, what a contender writes for
// each pod of an unhindered drain, from the order until it has tidied up.
func Writes(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	pods := float64(freeWork.Pods)
	once := options
	once.Repeat = 1
	runs := once.collect(func(contender string, run *report.Run) error {
		finish, err := drain(ctx, l, contender, freeWork)
		if err != nil {
			return err
		}
		run.Detail = map[string]float64{}
		total := 0
		for what, count := range finish.writes {
			run.Detail[what] = float64(count) / pods
			total += count
		}
		run.Values = append(run.Values, float64(total)/pods)
		return nil
	})
	return report.Sheet{
		Scenario: "writes",
		Unit:     "writes/pod",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 6},
		Runs:     runs,
	}
}
