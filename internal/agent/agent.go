//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/agent/inotify"
	"ebbtide.dev/ebbtide/internal/agent/shutdown"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

const (
	// relist is how often the folder is listed if nothing happens, as the kubelet does:
	// also where the kernel tells of no changes.
	relist = 20 * time.Second
	// pause is the least time between two passes.
	pause = 50 * time.Millisecond
	// rounds bounds how often a pass begins anew after it has moved something.
	rounds = 8
	// callWithin bounds requests to the API server.
	callWithin = 10 * time.Second
)

// Manifests is the folder with the manifests of static pods.
type Manifests interface {
	// List reads it. What cannot be read says why.
	List() core.Folder
	// Hold puts a manifest aside, Restore one back or out of the way.
	Hold(core.Move) error
	Restore(core.Move) error
}

// Records is where the agent writes down what it is going to do.
type Records interface {
	// Load reads them. With an error they are empty, and what they were is kept elsewhere.
	Load() (core.Journal, error)
	// Store returns when they are on disk.
	Store(core.Journal) error
	// Clear removes what has no entries.
	Clear() error
}

// Options are what an agent needs.
type Options struct {
	Self      core.Self
	Manifests Manifests
	Records   Records
	Client    client.WithWatch
	// Shutdown holds up shutdowns; nil leaves them alone.
	Shutdown *shutdown.Loop
	// ControlPlane is how pods of the control plane are treated.
	ControlPlane ControlPlane
	// Emit publishes events.
	Emit func(...event.Event)
	Log  logr.Logger
}

// Agent is the agent of a node.
type Agent struct {
	Options

	wake     chan struct{}
	feeds    feeds
	lastPass atomic.Int64
	metrics  *metrics
	signs    signs
	// uptime is that of the kernel.
	uptime func() time.Duration

	// What one goroutine alone uses.
	journal  core.Journal
	unstored bool // the journal is not on disk as it is here
	failures map[string]string
	servers  map[string]core.APIServer // by their Leases
	saw      string                    // the trouble that was logged last
}

// New is an agent that has yet to run.
func New(o Options) *Agent {
	a := &Agent{Options: o, wake: make(chan struct{}, 1), uptime: kernelUptime, signs: signs{matters: make(chan struct{}, 1)}, failures: map[string]string{}, metrics: newMetrics()}
	if a.Shutdown != nil {
		a.metrics.registry.MustRegister(a.Shutdown.Collector())
	}
	return a
}

// BootID is the boot of the kernel.
//
// Errors: it cannot be read.
func BootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// poke has the agent look again soon.
func (a *Agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run works until the context ends. What is put aside then stays there.
//
// Errors: none of what can pass by itself.
func (a *Agent) Run(ctx context.Context) error {
	var err error
	if a.journal, err = a.Records.Load(); err != nil {
		a.metrics.journalErrors.Inc()
		a.Log.Error(err, "The journal is made again from the files that are put aside")
	}
	a.feeds.start(ctx, a)
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { a.listen(ctx) })
	if a.ControlPlane.Host {
		beside.Go(func() { a.heartbeat(ctx) })
	}
	if a.Shutdown != nil {
		beside.Go(func() { a.Shutdown.Run(ctx, neighbour{a}) })
	}
	watch, err := inotify.Start(ctx, a.poke)
	if err != nil {
		a.trouble(fmt.Errorf("%w; %s is listed every %s instead", err, a.Self.Dir, relist))
	}
	watch.Follow(a.Self.Dir)
	for ctx.Err() == nil {
		again := a.pass(ctx)
		a.lastPass.Store(time.Now().UnixNano())
		watch.Follow(a.Self.Dir)
		a.await(ctx, pause, false)
		a.await(ctx, min(again, relist), true)
	}
	return nil
}

// await returns after a time, when the context ends, or if there is something new.
func (a *Agent) await(ctx context.Context, d time.Duration, news bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	wake := a.wake
	if !news {
		wake = nil
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}

// pass observes, decides, records and acts until there is nothing left to move, and
// reports.
func (a *Agent) pass(ctx context.Context) (again time.Duration) {
	failed := false
	for range rounds {
		s, d := a.decide(ctx)
		a.record(d)
		a.Emit(d.Events...)
		if len(d.Moves) > 0 && !failed {
			failed = !a.act(d.Moves)
			continue
		}
		if a.claim(ctx, d.Claim) {
			continue
		}
		a.report(ctx, s, d)
		if d.After == 0 || len(d.Moves) > 0 {
			return relist
		}
		return d.After
	}
	return pause
}

// decide asks the API server itself if that is what a decision needs.
func (a *Agent) decide(ctx context.Context) (core.Snapshot, core.Decision) {
	s := a.observe(ctx)
	d := core.Decide(s)
	if !d.NeedsLive {
		return s, d
	}
	live, err := a.observeLive(ctx, s)
	a.trouble(err)
	if err != nil {
		return s, d
	}
	return live, core.Decide(live)
}

// record writes the journal. What is not on disk is tried again in each pass.
func (a *Agent) record(d core.Decision) {
	if d.Journal != nil {
		a.metrics.held(a.journal, *d.Journal)
		a.journal, a.unstored = *d.Journal, true
	}
	if !a.unstored {
		return
	}
	store := func() error { return a.Records.Store(a.journal) }
	if len(a.journal.Manifests) == 0 {
		store = a.Records.Clear
	}
	if err := store(); err != nil {
		a.metrics.journalErrors.Inc()
		a.trouble(err)
		return
	}
	a.unstored = false
}

// act renames. What is not written down is not put aside; what is to come back does so all
// the same. It returns false if anything fails, which is told.
func (a *Agent) act(moves []core.Move) bool {
	a.failures = map[string]string{}
	for _, m := range moves {
		rename := a.Manifests.Restore
		if m.Hold {
			rename = a.Manifests.Hold
		}
		var err error
		if m.Hold && a.unstored {
			err = errors.New("the journal cannot be written, see the log of the agent")
		} else {
			err = rename(m)
		}
		if err != nil {
			a.failures[m.File] = err.Error()
			a.trouble(fmt.Errorf("rename %s to %s: %w", m.From, m.To, err))
			continue
		}
		a.Log.Info("Renamed a manifest", "from", m.From, "to", m.To)
		a.Emit(m.Events...)
	}
	return len(a.failures) == 0
}

// trouble is logged when it changes.
func (a *Agent) trouble(err error) {
	if err == nil || err.Error() == a.saw {
		return
	}
	a.saw = err.Error()
	a.Log.Error(err, "This is tried again")
}
