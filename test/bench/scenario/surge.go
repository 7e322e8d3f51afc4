package scenario

import (
	"context"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

var (
	// singles are applications of one pod each.
	singles = lab.Work{Apps: 20, Pods: 1, Surge: 1}
	// queue are pods of one application, of which one may be surged at a time.
	queue = lab.Work{Pods: 10, Surge: 1}
)

// Surge counts what Ebbtide writes for each pod that it moves by surging, and
// times it: pods of different applications, which surge together, and those of
// one, which have to take turns. The others evict, which is no surge.
func Surge(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	runs := options.ebbtideOnce().collect(func(contender string, run *report.Run) error {
		together, err := drain(ctx, l, contender, singles)
		if err != nil {
			return err
		}
		inTurn, err := drain(ctx, l, contender, queue)
		if err != nil {
			return err
		}
		run.Detail = together.writesPer(float64(singles.Apps))
		run.Values = append(run.Values, sum(run.Detail))
		run.Declared = append(run.Declared, together.declared.Seconds())
		run.Detail["secondsTogether"] = together.gone.Seconds()
		run.Detail["secondsPerPodInTurn"] = inTurn.gone.Seconds() / float64(queue.Pods)
		return nil
	})
	return report.Sheet{
		Scenario: "surge",
		Unit:     "writes/pod",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 12},
		Runs:     runs,
	}
}
