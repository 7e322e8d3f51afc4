package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload/guard"
)

// Pace holds the intervals and time limits of connections.
type Pace struct {
	// Probe is the interval between probes of a cluster, Answer their time limit.
	Probe, Answer time.Duration
	// Message limits a request, and one event of a watch.
	Message time.Duration
	// Sync limits the first read of all objects.
	Sync time.Duration
	// Stale limits how long watches may fail while the cluster responds.
	Stale time.Duration
	// Idle limits how long an unused connection is kept.
	Idle time.Duration
	// Retry is between attempts to connect.
	Retry wait.Backoff
	// Hold is the pause after a cluster has exceeded a bound. It doubles each time in a row, up
	// to LongestHold.
	Hold, LongestHold time.Duration
}

// UsualPace returns the Pace of managers.
func UsualPace() Pace {
	return Pace{
		Probe: 10 * time.Second, Answer: 5 * time.Second, Message: 30 * time.Second,
		Sync: 5 * time.Minute, Stale: time.Minute, Idle: 5 * time.Minute,
		Retry: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 10 * time.Second},
		Hold:  time.Minute, LongestHold: 30 * time.Minute,
	}
}

// connected is the state of a cluster that can be used.
var connected = State{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "The cluster is responding."}

// link connects to one cluster again and again until it is ended.
type link struct {
	registry *Registry
	logger   logr.Logger
	open     func(context.Context) (*session, error)
	// started and cancel are guarded by the lock of the registry.
	started bool
	cancel  context.CancelFunc

	mu         sync.Mutex
	state      State
	connection *Connection
}

// newLink returns a link that connects when the hold-off is over.
func newLink(r *Registry, cluster types.NamespacedName, hold HoldOff, open func(context.Context) (*session, error)) *link {
	l := &link{
		registry: r, logger: log.Log.WithValues("Cluster", cluster), open: open, cancel: func() {},
		state: State{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting, Message: "connecting", Since: r.clock.Now()},
	}
	if hold.End.After(r.clock.Now()) {
		l.state.Status, l.state.Reason, l.state.HoldOff = metav1.ConditionFalse, v1alpha1.ReasonLimitExceeded, hold
		l.state.Message = "The cluster has exceeded a bound." + hold.advice()
	}
	return l
}

// run returns when the context has ended.
func (l *link) run(ctx context.Context) {
	pace, clock := l.registry.pace, l.registry.clock
	hold := l.current().HoldOff
	if hold != (HoldOff{}) {
		l.registry.changedLink(l)
	}
	l.pause(ctx, hold.End.Sub(clock.Now()))
	retry := pace.Retry
	for ctx.Err() == nil {
		began := clock.Now()
		err := l.attempt(ctx)
		if l.current().Status == metav1.ConditionTrue {
			retry = pace.Retry
		}
		now := clock.Now()
		if now.Sub(began) > pace.LongestHold {
			hold = HoldOff{}
		}
		wait := retry.Step()
		if guard.IsBreach(err) {
			hold = hold.next(now, pace)
			wait = hold.End.Sub(now)
		}
		if ctx.Err() == nil {
			l.become(lost(err, hold), nil)
		}
		l.pause(ctx, wait)
	}
}

// lost returns the state of a cluster that cannot be used.
func lost(err error, hold HoldOff) State {
	if !guard.IsBreach(err) {
		return State{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: err.Error()}
	}
	return State{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonLimitExceeded,
		Message: err.Error() + "." + hold.advice(), HoldOff: hold,
	}
}

func (l *link) pause(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	pause := l.registry.clock.NewTimer(wait)
	defer pause.Stop()
	select {
	case <-ctx.Done():
	case <-pause.C():
	}
}

// attempt connects and returns when that has failed or the cluster is lost.
func (l *link) attempt(ctx context.Context) error {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := l.open(own)
	if err != nil {
		return err
	}
	return s.run(own, l)
}

// progress reports the kind for which the first connection waits.
func (l *link) progress(kind string) {
	if state := l.current(); state.Reason == v1alpha1.ReasonConnecting {
		state.Message = "reading " + kind
		l.become(state, nil)
	}
}

// become sets the state. It is called by one goroutine at a time.
func (l *link) become(state State, connection *Connection) {
	state.Since = l.registry.clock.Now()
	l.mu.Lock()
	before := l.state
	if before.Reason == state.Reason {
		state.Since = before.Since
	}
	l.state, l.connection = state, connection
	l.mu.Unlock()
	if state == before {
		return
	}
	if state.Reason != before.Reason {
		l.logger.Info("Changed the state of a connection", "reason", state.Reason, "message", state.Message)
	}
	l.registry.changedLink(l)
}

func (l *link) current() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// use returns the connection, or the reason why the Cluster has none.
func (l *link) use(cluster types.NamespacedName) (*Connection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.connection != nil:
		return l.connection, nil
	case l.state.Reason == v1alpha1.ReasonConnecting:
		return nil, fmt.Errorf("cluster %s is %w: %s", cluster, ErrConnecting, l.state.Message)
	}
	since := l.state.Since.UTC().Format(time.RFC3339)
	return nil, fmt.Errorf("cluster %s is %w since %s: %s", cluster, ErrUnreachable, since, l.state.Message)
}
