package scenario

import (
	"context"
	"errors"
	"time"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// crowd are 1,000 pods on 50 nodes that nothing holds back.
var crowd = lab.Work{Nodes: 50, Pods: 1000}

// Starve drains 50 nodes of free pods with and without one pod on each that can
// never go: whether pods that wait cost those that need not. It compares Ebbtide
// with itself, once.
func Starve(ctx context.Context, l *lab.Lab, options Options) report.Sheet {
	runs := options.ebbtideOnce().collect(func(contender string, run *report.Run) error {
		free, err := drain(ctx, l, contender, crowd)
		if err != nil {
			return err
		}
		hindered, err := starve(ctx, l, contender)
		if err != nil {
			return err
		}
		run.Detail = map[string]float64{"secondsAlone": free.gone.Seconds(), "secondsWithStuck": hindered.Seconds()}
		run.Values = append(run.Values, hindered.Seconds()/free.gone.Seconds())
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

// starve returns how long the free pods take to go beside those that cannot.
func starve(ctx context.Context, l *lab.Lab, name string) (gone time.Duration, err error) {
	work := crowd
	work.Stuck = true
	_, err = stage(ctx, l, cast{name, work}, func(contender lab.Contender, load *lab.Load) error {
		var err error
		gone, err = untilOnlyStuck(ctx, l, contender, load)
		return err
	})
	return gone, err
}

// untilOnlyStuck gives up the drain, which has no end, when the free pods have gone.
func untilOnlyStuck(ctx context.Context, l *lab.Lab, contender lab.Contender, load *lab.Load) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	departure, err := l.WatchDeparture(ctx, load)
	if err != nil {
		return 0, err
	}
	defer departure.Stop()

	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- contender.Drain(ctx, load.Nodes) }()
	err = departure.Until(ctx, 0)
	gone := time.Since(start)
	cancel()
	said := <-ended
	switch {
	case err != nil:
		return 0, errors.Join(err, said)
	case said == nil:
		return 0, errors.New("the contender says that it is done, although the stuck pods are still there")
	}
	return gone, nil
}
