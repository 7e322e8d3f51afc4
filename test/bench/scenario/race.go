package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebbtide.dev/ebbtide/test/bench/audit"
	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// finish is how one contender drained the work.
type finish struct {
	// gone is from the order until the last pod had gone.
	gone time.Duration
	// declared is from the order until the contender said that it was done.
	declared time.Duration
	// cpu is what that cost, the control plane included.
	cpu time.Duration
	// gaps are those between the waves in which the pods left, if they did in turn.
	gaps []time.Duration
	// writes are the contender's, until it has tidied up.
	writes map[string]int
}

// race has every contender drain the same work and reports the seconds until
// the last pod had gone.
func race(ctx context.Context, l *lab.Lab, options Options, work lab.Work) []report.Run {
	return options.collect(func(contender string, run *report.Run) error {
		finish, err := drain(ctx, l, contender, work)
		if err != nil {
			return err
		}
		run.Values = append(run.Values, finish.gone.Seconds())
		run.Declared = append(run.Declared, finish.declared.Seconds())
		run.CPU = append(run.CPU, finish.cpu.Seconds())
		return nil
	})
}

// drain measures one contender on fresh work.
func drain(ctx context.Context, l *lab.Lab, name string, work lab.Work) (finish, error) {
	var result finish
	var agent string
	events, err := stage(ctx, l, cast{name, work}, func(contender lab.Contender, load *lab.Load) error {
		var err error
		result, err = timed(ctx, l, contender, load)
		agent = contender.Agent()
		return err
	})
	result.writes = audit.Writes(events, agent)
	return result, err
}

// timed gives the order and takes the times.
func timed(ctx context.Context, l *lab.Lab, contender lab.Contender, load *lab.Load) (finish, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	departure, err := l.WatchDeparture(ctx, load)
	if err != nil {
		return finish{}, err
	}
	defer departure.Stop()

	type declaration struct {
		after time.Duration
		err   error
	}
	declared := make(chan declaration, 1)
	start, idle := time.Now(), l.CPU()
	go func() {
		err := contender.Drain(ctx, load.Nodes)
		declared <- declaration{time.Since(start), err}
	}()
	err = departure.Until(ctx, 0)
	gone := time.Since(start)
	said := <-declared
	if err := errors.Join(err, said.err); err != nil {
		return finish{}, fmt.Errorf("drain: %w", err)
	}
	cpu := l.CPU() - idle
	gaps, err := departure.Gaps()
	return finish{gone: gone, declared: said.after, cpu: cpu, gaps: gaps}, err
}
