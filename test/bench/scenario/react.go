package scenario

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/test/bench/audit"
	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

const (
	// openings is how often the budget opens for one pod.
	openings = 100
	// reaction is how long one opening may take, on average, before the contender
	// is given up.
	reaction = 3 * time.Second
	// refused is how long a contender has to find out that no pod may go.
	refused = 3 * time.Second
	// settled is how long nothing happens before the next opening, so that none
	// profits from work that is still under way.
	settled = 300 * time.Millisecond
)

// React opens the budget of a blocked node for one pod at a time, as budgets
// open in life: a pod elsewhere has become healthy. Measured in the audit log:
// from the arrival of the status by which the disruption controller opened the
// budget, to that of the eviction that was granted. Only those who watch budgets
// take part; the others retry by the clock.
func React(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	watchers := options.of(report.Oracle, report.Ebbtide)
	watchers.Repeat = 1
	runs := watchers.collect(func(contender string, run *report.Run) error {
		reactions, err := react(ctx, l, contender)
		for _, reaction := range reactions {
			run.Values = append(run.Values, float64(reaction.Microseconds())/1000)
		}
		if err == nil && len(reactions) < openings {
			return fmt.Errorf("only %d of %d openings were used", len(reactions), openings)
		}
		return err
	})
	return report.Sheet{
		Scenario: "react",
		Unit:     "ms",
		Quantile: 0.99,
		Goal:     report.Goal{AtMost: 250},
		Runs:     runs,
	}
}

// blockedWork are pods of which none may go.
var blockedWork = lab.Work{
	Pods:     openings,
	Budget:   &policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(openings))},
	NoRefuge: true,
}

func react(ctx context.Context, l *lab.Lab, name string) ([]time.Duration, error) {
	var namespace, agent string
	events, err := stage(ctx, l, cast{name, blockedWork}, func(contender lab.Contender, load *lab.Load) error {
		namespace, agent = load.Namespace, contender.Agent()
		return openAll(ctx, l, contender, load)
	})
	return audit.Reactions(events, namespace, agent), err
}

// openAll begins a drain that cannot proceed and opens the budget until all
// pods have gone.
func openAll(ctx context.Context, l *lab.Lab, contender lab.Contender, load *lab.Load) error {
	ctx, cancel := context.WithTimeout(ctx, openings*reaction)
	defer cancel()
	departure, err := l.WatchDeparture(ctx, load)
	if err != nil {
		return err
	}
	defer departure.Stop()
	declared := make(chan error, 1)
	go func() { declared <- contender.Drain(ctx, load.Nodes) }()
	if err := pause(ctx, refused); err != nil {
		return err
	}
	for opened := 1; departure.Left() > 0; opened++ {
		if err := pause(ctx, settled); err != nil {
			return err
		}
		if err := l.Relieve(ctx, load, fmt.Sprintf("relief-%d", opened)); err != nil {
			return err
		}
		if err := departure.Until(ctx, openings-opened); err != nil {
			return err
		}
	}
	return <-declared
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
