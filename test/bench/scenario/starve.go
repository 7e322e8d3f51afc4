package scenario

import (
	"context"
	"errors"
	"time"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// fleetWork are 1,000 pods on 50 nodes that nothing holds back.
var fleetWork = lab.Work{Nodes: 50, Pods: 1000}

// Starve drains 50 nodes of free pods with and without one pod on each that can
// never go: whether pods that wait cost those that need not. It compares Ebbtide
// with itself, once.
func Starve(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	runs := options.ebbtideOnce().collect(func(contender string, run *report.Run) error {
		free, err := drain(ctx, l, contender, fleetWork)
		if err != nil {
			return err
		}
		work := fleetWork
		work.Stuck = true
		beside, err := hindered(ctx, l, contender, work)
		if err != nil {
			return err
		}
		run.Detail = map[string]float64{"secondsAlone": free.gone.Seconds(), "secondsWithStuck": beside.took.Seconds()}
		run.Values = append(run.Values, beside.took.Seconds()/free.gone.Seconds())
		return nil
	})
	return report.Sheet{
		Scenario: "starve",
		Unit:     "× alone",
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: 1.5},
		Runs:     runs,
	}
}

// hindered times a drain that has no end until the pods that can go have gone.
func hindered(ctx context.Context, l *lab.Lab, name string, work lab.Work) (abandoned, error) {
	var order abandoned
	_, err := stage(ctx, l, cast{name, work}, func(contender lab.Contender, load *lab.Load) error {
		departure, err := l.WatchDeparture(ctx, load)
		if err != nil {
			return err
		}
		defer departure.Stop()
		order.reached = func(ctx context.Context) error { return departure.Until(ctx, 0) }
		err = order.give(ctx, l, contender, load)
		if err == nil && order.said == nil {
			err = errors.New("the contender says that it is done, although pods that cannot go are still there")
		}
		return err
	})
	return order, err
}

// abandoned is an order to drain that is given up when something is reached.
type abandoned struct {
	reached func(context.Context) error
	// began is when the order was given, and took how long it took to reach it.
	began time.Time
	took  time.Duration
	// cpu is what that cost, the control plane included.
	cpu time.Duration
	// said is how the drain ended; nil if the contender says that it was done.
	said error
}

func (a *abandoned) give(ctx context.Context, l *lab.Lab, contender lab.Contender, load *lab.Load) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ended := make(chan error, 1)
	idle := l.CPU()
	a.began = time.Now()
	go func() { ended <- contender.Drain(ctx, load.Nodes) }()
	err := a.reached(ctx)
	a.took, a.cpu = time.Since(a.began), l.CPU()-idle
	cancel()
	if a.said = <-ended; err != nil {
		return errors.Join(err, a.said)
	}
	return nil
}
