package scenario

import (
	"context"
	"fmt"
	"time"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

const (
	// unasked stands for the API server that does not ask Ebbtide about evictions.
	unasked = "unasked"
	// blocks and inBlock are how many evictions are timed with and without the
	// webhook, in turns.
	blocks, inBlock = 6, 50
)

// Admit times single requests to evict a pod without evacuators, with the webhook
// that everybody's evictions pass and without it.
func Admit(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	without := report.Run{Contender: unasked}
	runs := options.ebbtideOnce().collect(func(contender string, run *report.Run) error {
		_, err := stage(ctx, l, cast{contender, lab.Work{}}, func(_ lab.Contender, load *lab.Load) error {
			return inTurns(ctx, l, load, map[bool]*report.Run{true: run, false: &without})
		})
		if err == nil {
			run.Detail = map[string]float64{
				"p50": report.Quantile(run.Values, 0.5), "p50Unasked": report.Quantile(without.Values, 0.5),
				"p99": report.Quantile(run.Values, 0.99), "p99Unasked": report.Quantile(without.Values, 0.99),
			}
			fmt.Fprintf(options.Progress, "  p50 %.2f ms with the webhook, %.2f ms without\n", run.Detail["p50"], run.Detail["p50Unasked"])
		}
		return err
	})
	if len(runs) > 0 {
		runs = append(runs, without)
	}
	return report.Sheet{
		Scenario: "admit",
		Unit:     "ms",
		Quantile: 0.99,
		Goal:     report.Goal{AtMost: 50},
		Runs:     runs,
	}
}

// inTurns times blocks of requests, in milliseconds, with the webhook switched on
// and off before each.
func inTurns(ctx context.Context, l *lab.Lab, load *lab.Load, runs map[bool]*report.Run) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	door, err := l.OpenDoor(ctx, load)
	if err != nil {
		return err
	}
	for turn := range 2 * blocks {
		asks := turn%2 == 1
		if err := door.Ask(ctx, asks); err != nil {
			return err
		}
		for range inBlock {
			start := time.Now()
			if err := door.Knock(ctx); err != nil {
				return err
			}
			runs[asks].Values = append(runs[asks].Values, float64(time.Since(start).Microseconds())/1000)
		}
	}
	return nil
}
