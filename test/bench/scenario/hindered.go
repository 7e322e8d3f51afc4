package scenario

import (
	"context"
	"errors"
	"time"

	"ebbtide.dev/ebbtide/test/bench/lab"
)

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
