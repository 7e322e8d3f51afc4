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
)

// pace is how long things take.
type pace struct {
	// probe is how often a cluster is asked whether it is there, answer how long
	// it may take to say so.
	probe, answer time.Duration
	// sync is how long it may take to read everything.
	sync time.Duration
	// stale is for how long watches may fail while the cluster answers.
	stale time.Duration
	// idle is how long a connection is kept that nobody uses.
	idle time.Duration
	// retry is between attempts to connect.
	retry wait.Backoff
}

var usualPace = pace{
	probe: 10 * time.Second, answer: 5 * time.Second,
	sync: 5 * time.Minute, stale: time.Minute, idle: 5 * time.Minute,
	retry: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 10 * time.Second},
}

// link connects to one cluster again and again until it is ended.
type link struct {
	registry *Registry
	logger   logr.Logger
	open     func(context.Context) (*session, error)
	// started and cancel are the registry's, under its lock.
	started bool
	cancel  context.CancelFunc

	mu         sync.Mutex
	state      State
	connection *Connection
}

func newLink(r *Registry, cluster types.NamespacedName, open func(context.Context) (*session, error)) *link {
	return &link{
		registry: r, logger: log.Log.WithValues("Cluster", cluster), open: open, cancel: func() {},
		state: State{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting, Message: "connecting", Since: r.clock.Now()},
	}
}

// run returns when the context has ended.
func (l *link) run(ctx context.Context) {
	retry := l.registry.pace.retry
	for ctx.Err() == nil {
		if connected := l.attempt(ctx); connected {
			retry = l.registry.pace.retry
		}
		pause := l.registry.clock.NewTimer(retry.Step())
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C():
		}
	}
}

// attempt connects and returns when that has failed or the cluster is lost, and
// says whether it was connected.
func (l *link) attempt(ctx context.Context) (connected bool) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := l.open(own)
	if err == nil {
		// What was watched may take a while to end. Nobody waits for that.
		defer l.registry.running.Go(s.close)
		defer cancel()
		err = s.run(own, l)
	}
	connected = l.seen().Status == metav1.ConditionTrue
	if ctx.Err() == nil {
		l.become(State{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: err.Error()}, nil)
	}
	return connected
}

// progress says which kinds the first connection still reads.
func (l *link) progress(kinds string) {
	if state := l.seen(); state.Reason == v1alpha1.ReasonConnecting && kinds != "" {
		state.Message = "reading " + kinds
		l.become(state, nil)
	}
}

func (l *link) connected(connection *Connection) {
	l.become(State{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "The cluster answers."}, connection)
}

// become takes a state on; only the link's own goroutine does that.
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
		l.logger.Info("The connection to a cluster has changed", "reason", state.Reason, "message", state.Message)
	}
	l.registry.tellOf(l)
}

func (l *link) seen() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// use returns the connection, or why the Cluster that asks has none.
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
