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
	// ScheduleDir is where systemd keeps the time of a shutdown, in a file "scheduled". The
	// folder is there when the first one is scheduled.
	ScheduleDir = "/run/systemd/shutdown"
	// relist is how often the file is read if nothing happens: also where the kernel tells of
	// no changes. An inhibitor or an entry that was refused is tried again then.
	relist = 20 * time.Second
	// rounds bounds how often is decided anew because an inhibitor was taken, or refused.
	rounds = 3
	// maxEntry is more than any entry of ours has.
	maxEntry = 64 << 10
)

// Logind is systemd-logind.
type Logind interface {
	// Watch tells what it says, at first and whenever that changes, until the context ends.
	Watch(ctx context.Context, tell func(logind.State))
	// Inhibit holds shutdowns up until what it returns is closed.
	Inhibit(ctx context.Context) (io.Closer, error)
}

// Options are what a loop needs.
type Options struct {
	// Wish is what is to be done about shutdowns.
	Wish v1alpha1.NodeShutdownMode
	// BootID is the boot that the machine is in.
	BootID string
	Logind Logind
	// ScheduleDir is the folder with the time of a shutdown. Defaults to ScheduleDir.
	ScheduleDir string
	// StateDir is the folder for what is written down.
	StateDir string
	// Emit publishes events.
	Emit func(...event.Event)
	Log  logr.Logger
}

// Agent is the loop that runs beside: what it has seen of the API, and writes there.
type Agent interface {
	// NodeAndPods returns the node and its pods; nil is unknown.
	NodeAndPods() (*corev1.Node, []*corev1.Pod)
	// ReportSoon has it tell what was decided.
	ReportSoon()
}

// Loop holds up the shutdowns of a node.
type Loop struct {
	Options

	wake      chan struct{}
	entries   disk.File
	schedule  disk.File
	inhibitor prometheus.Gauge

	mu      sync.Mutex // guards what follows
	heard   *logind.State
	decided *core.Decision

	// What one goroutine alone uses.
	entry      *core.Entry
	unstored   bool // the entry is not on disk as it is here
	fresh      bool // nothing was decided yet that logind had a say in
	inhibition inhibition
	saw        string // the trouble that was logged last
}

// New is a loop that has yet to run.
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

// Collector is what Prometheus is told.
func (l *Loop) Collector() prometheus.Collector { return l.inhibitor }

// Wake has the loop look again.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Decided is what was decided last; false before anything was.
func (l *Loop) Decided() (core.Decision, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.decided == nil {
		return core.Decision{}, false
	}
	return *l.decided, true
}

// Run works until the context ends. A shutdown is not held up any more then.
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

// load reads the entry. One that makes no sense is kept aside, and nothing is known then.
func (l *Loop) load() {
	data, err := l.entries.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		l.entry, err = core.ParseEntry(data)
	}
	if err != nil {
		l.Log.Error(l.entries.Reject(err), "What was written down of a shutdown is lost")
	}
}

// hear keeps what systemd-logind says.
func (l *Loop) hear(state logind.State) {
	l.mu.Lock()
	l.heard = &state
	l.mu.Unlock()
	l.Wake()
}

// pass observes, decides, records and acts, and returns when to do so again at the latest.
func (l *Loop) pass(ctx context.Context, agent Agent) (again time.Duration) {
	state, known := l.says()
	if !known {
		return relist
	}
	for range rounds {
		d := core.Decide(l.observe(state, agent))
		l.record(d.Entry)
		moved := l.inhibition.ensure(ctx, d.Inhibit, state)
		l.trouble(l.inhibition.refusal)
		l.fresh = l.fresh && state.Fault != ""
		l.Emit(d.Events...)
		l.tell(d, agent)
		if again = relist; d.After > 0 {
			again = min(again, d.After)
		}
		if !moved {
			break
		}
	}
	return again
}

// says is what systemd-logind says; false until it has been heard.
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

// record writes the entry. What cannot be written keeps nobody from what is to be done; it
// is tried again in each pass.
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
		l.trouble(fmt.Sprintf("write down the shutdown: %v", err))
		return
	}
	l.unstored = false
}

// tell keeps the decision for the agent.
func (l *Loop) tell(d core.Decision, agent Agent) {
	l.inhibitor.Set(0)
	if l.inhibition.lock != nil {
		l.inhibitor.Set(1)
	}
	l.mu.Lock()
	l.decided = &d
	l.mu.Unlock()
	agent.ReportSoon()
}

// trouble is logged when it changes.
func (l *Loop) trouble(what string) {
	if what == "" || what == l.saw {
		return
	}
	l.saw = what
	l.Log.Info("This is tried again", "trouble", what)
}
