//go:build linux

package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/disk"
	"ebbtide.dev/ebbtide/internal/agent/logind"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent/shutdown"
)

const (
	// ScheduleDir holds systemd's file "scheduled". It is created with the first schedule.
	ScheduleDir = "/run/systemd/shutdown"
	// relist is the interval of reading the file without events, and of retrying a refused inhibitor
	// or entry.
	relist = 20 * time.Second
	// rounds limits how often an inhibitor that changes repeats the decision.
	rounds   = 3
	maxEntry = 64 << 10
)

// Logind is systemd-logind.
type Logind interface {
	// Watch calls changed with the first state and every other one until the context ends.
	Watch(ctx context.Context, tell func(logind.State))
	// Inhibit delays shutdowns until the result is closed.
	Inhibit(ctx context.Context) (io.Closer, error)
}

// Options of a Loop.
type Options struct {
	// Wish is the requested mode.
	Wish        v1alpha1.NodeShutdownMode
	BootID      string
	Logind      Logind
	ScheduleDir string
	StateDir    string
	Emit        func(...event.Event)
	Log         logr.Logger
}

// Agent is the agent beside the loop.
type Agent interface {
	// NodeAndPods returns the node and its pods; nil is unknown.
	NodeAndPods() (*corev1.Node, []*corev1.Pod)
	// ReportSoon requests a report of the decision.
	ReportSoon()
}

// Loop delays the shutdowns of a node.
type Loop struct {
	Options

	wake      chan struct{}
	entries   disk.File
	schedule  disk.File
	inhibitor prometheus.Gauge

	mu      sync.Mutex // guards what follows
	heard   *logind.State
	decided *core.Decision

	// Fields of the one goroutine of Run.
	entry       *core.Entry
	unstored    bool // the entry is not on disk as it is here
	fresh       bool // nothing was decided yet that logind had a say in
	inhibition  inhibition
	lastTrouble string // the trouble that was logged last
}

// New returns a loop that does not run yet.
func New(o Options) *Loop {
	if o.ScheduleDir == "" {
		o.ScheduleDir = ScheduleDir
	}
	return &Loop{
		Options: o, wake: make(chan struct{}, 1), fresh: true,
		entries:    disk.File{Dir: o.StateDir, Name: "shutdown.json", Max: maxEntry},
		schedule:   disk.File{Dir: o.ScheduleDir, Name: "scheduled", Max: core.MaxScheduleFile},
		inhibition: inhibition{logind: o.Logind},
		inhibitor: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ebbtide_agent_inhibitor", Help: "1 while a shutdown of the node would wait for the agent.",
		}),
	}
}

// Collector returns the metrics of the loop.
func (l *Loop) Collector() prometheus.Collector { return l.inhibitor }

// Wake requests another pass.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Decided returns the last decision, if any.
func (l *Loop) Decided() (core.Decision, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.decided == nil {
		return core.Decision{}, false
	}
	return *l.decided, true
}

// Run works until the context ends, and then releases the inhibitor.
func (l *Loop) Run(ctx context.Context, agent Agent) {
	defer l.inhibition.release()
	l.load()
	var beside sync.WaitGroup
	defer beside.Wait()
	if l.Wish != v1alpha1.ShutdownModeOff {
		beside.Go(func() { l.Logind.Watch(ctx, l.hear) })
	}
	watch := l.watchSchedule(ctx)
	for ctx.Err() == nil {
		watch()
		timer := time.NewTimer(l.pass(ctx, agent))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.wake:
		}
		timer.Stop()
	}
}

// load reads the entry. An invalid one is renamed and ignored.
func (l *Loop) load() {
	data, err := l.entries.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		l.entry, err = core.ParseEntry(data)
	}
	if err != nil {
		l.Log.Error(l.entries.Reject(err), "Discarded the recorded shutdown")
	}
}

func (l *Loop) hear(state logind.State) {
	l.mu.Lock()
	l.heard = &state
	l.mu.Unlock()
	l.Wake()
}

// pass observes, decides, records and acts, and returns when the next pass is due.
func (l *Loop) pass(ctx context.Context, agent Agent) (again time.Duration) {
	state, known := l.says()
	if !known {
		return relist
	}
	for range rounds {
		d := core.Decide(l.observe(state, agent))
		l.record(d.Entry)
		moved := l.inhibition.ensure(ctx, d.Inhibit, state)
		l.logTrouble(l.inhibition.refusal)
		l.fresh = l.fresh && state.Fault != ""
		l.Emit(d.Events...)
		l.publish(d, agent)
		if again = relist; d.After > 0 {
			again = min(again, d.After)
		}
		if !moved {
			break
		}
	}
	return again
}

func (l *Loop) says() (logind.State, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.Wish == v1alpha1.ShutdownModeOff:
		return logind.State{}, true
	case l.heard == nil:
		return logind.State{}, false
	}
	return *l.heard, true
}

func (l *Loop) observe(state logind.State, agent Agent) core.Snapshot {
	node, pods := agent.NodeAndPods()
	return core.Snapshot{
		Now: time.Now(), BootID: l.BootID, Wish: l.Wish, Schedule: l.readSchedule(), Node: node, Pods: pods,
		Held: l.inhibition.lock != nil, Refusal: l.inhibition.refusal, Entry: l.entry, Fresh: l.fresh,
		Logind: core.Logind{
			Fault: state.Fault, Preparing: state.Preparing, Type: state.Type,
			Delay: state.Delay, DelayFault: state.DelayFault, Kubelet: state.Kubelet,
		},
	}
}

// record writes the entry. A failed write blocks nothing and is retried in each pass.
func (l *Loop) record(entry *core.Entry) {
	if string(entry.Text()) != string(l.entry.Text()) {
		l.entry, l.unstored = entry, true
	}
	if !l.unstored {
		return
	}
	store := l.entries.Remove
	if l.entry != nil {
		store = func() error { return l.entries.Write(l.entry.Text()) }
	}
	if err := store(); err != nil {
		l.logTrouble(fmt.Sprintf("write down the shutdown: %v", err))
		return
	}
	l.unstored = false
}

// publish keeps the decision for the agent.
func (l *Loop) publish(d core.Decision, agent Agent) {
	l.inhibitor.Set(0)
	if l.inhibition.lock != nil {
		l.inhibitor.Set(1)
	}
	l.mu.Lock()
	l.decided = &d
	l.mu.Unlock()
	agent.ReportSoon()
}

// logTrouble logs an error when it changes.
func (l *Loop) logTrouble(what string) {
	if what == "" || what == l.lastTrouble {
		return
	}
	l.lastTrouble = what
	l.Log.Info("Retrying", "reason", what)
}
