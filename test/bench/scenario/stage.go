package scenario

import (
	"context"
	"errors"

	"ebbtide.dev/ebbtide/test/bench/audit"
	"ebbtide.dev/ebbtide/test/bench/lab"
)

// cast is who has to drain what.
type cast struct {
	contender string
	work      lab.Work
}

// stage prepares the work, starts the contender, has it measured and tidies up
// after both, whatever happens. It returns what the audit log has on it, from
// the contender being warm until it has tidied up.
func stage(
	ctx context.Context, l *lab.Lab, who cast, measure func(lab.Contender, *lab.Load) error,
) (events []audit.Event, err error) {
	load, err := l.Prepare(ctx, who.work)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Clear(ctx, load)) }()
	contender, err := l.Start(ctx, who.contender, load)
	if err != nil {
		return nil, err
	}
	_, skipErr := l.Audit.Next()
	measureErr := measure(contender, load)
	stopErr := contender.Stop(ctx)
	events, readErr := l.Audit.Next()
	return events, errors.Join(measureErr, stopErr, skipErr, readErr)
}
