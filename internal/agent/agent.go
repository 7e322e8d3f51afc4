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
	"ebbtide.dev/ebbtide/internal/agent/reboot"
	"ebbtide.dev/ebbtide/internal/agent/shutdown"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

const (
	// relist is the interval of listing the folder without events, as in the kubelet.
	relist = 20 * time.Second
	pause  = 50 * time.Millisecond
	// rounds limits how often a pass is repeated after a move.
	rounds     = 8
	callWithin = 10 * time.Second
)

// Manifests is the folder of static pod manifests.
type Manifests interface {
	List() core.Folder
	// Hold puts a manifest aside; Restore puts one back or out of the way.
	Hold(core.Move) error
	Restore(core.Move) error
}

// Records stores what the agent is about to do.
type Records interface {
	// Load returns an empty journal with an error; the content is kept elsewhere.
	Load() (core.Journal, error)
	// Store returns when the journal is on disk.
	Store(core.Journal) error
	// Clear removes a journal without entries.
	Clear() error
}

// Options of an agent.
type Options struct {
	Self      core.Self
	Manifests Manifests
	Records   Records
	Client    client.WithWatch
	// Shutdown delays shutdowns; nil disables that.
	Shutdown *shutdown.Loop
	// Reboot reports and reboots; nil disables that.
	Reboot       *reboot.Loop
	ControlPlane ControlPlane
	Emit         func(...event.Event)
	Log          logr.Logger
}

// Agent is the agent of a node.
type Agent struct {
	Options

	wake     chan struct{}
	feeds    feeds
	lastPass atomic.Int64
	metrics  *metrics
	signs    signs
	uptime   func() time.Duration

	// Fields of the one goroutine of Run.
	journal     core.Journal
	unstored    bool // the journal is not on disk as it is here
	failures    map[string]string
	servers     map[string]core.APIServer // by their Leases
	lastTrouble string                    // the trouble that was logged last
}

// New returns an agent that does not run yet.
func New(o Options) *Agent {
	a := &Agent{Options: o, wake: make(chan struct{}, 1), uptime: kernelUptime, signs: signs{matters: make(chan struct{}, 1)}, failures: map[string]string{}, metrics: newMetrics()}
	if a.Shutdown != nil {
		a.metrics.registry.MustRegister(a.Shutdown.Collector())
	}
	return a
}

// BootID returns the boot ID of the kernel. It fails if that cannot be read.
func BootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

func (a *Agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run works until the context ends. Manifests that are put aside stay there. Temporary problems are
// no errors.
func (a *Agent) Run(ctx context.Context) error {
	var err error
	if a.journal, err = a.Records.Load(); err != nil {
		a.metrics.journalErrors.Inc()
		a.Log.Error(err, "Restored the journal from the files that are put aside")
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
	if a.Reboot != nil {
		beside.Go(func() { a.Reboot.Run(ctx, neighbour{a}) })
	}
	watch, err := inotify.Start(ctx, a.poke)
	if err != nil {
		a.logTrouble(fmt.Errorf("%w; %s is listed every %s instead", err, a.Self.Dir, relist))
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

// pass observes, decides, records and acts until nothing is left to move, and reports.
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

// decide repeats a decision on a live snapshot if it needs that.
func (a *Agent) decide(ctx context.Context) (core.Snapshot, core.Decision) {
	s := a.observe(ctx)
	d := core.Decide(s)
	if !d.NeedsLive {
		return s, d
	}
	live, err := a.observeLive(ctx, s)
	a.logTrouble(err)
	if err != nil {
		return s, d
	}
	return live, core.Decide(live)
}

// record writes the journal. A failed write is retried in each pass.
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
		a.logTrouble(err)
		return
	}
	a.unstored = false
}

// act renames files. A manifest is not put aside unless that is recorded, but always restored. It
// returns false after an error, which is reported.
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
			a.logTrouble(fmt.Errorf("rename %s to %s: %w", m.From, m.To, err))
			continue
		}
		a.Log.Info("Renamed a manifest", "from", m.From, "to", m.To)
		a.Emit(m.Events...)
	}
	return len(a.failures) == 0
}

// logTrouble logs an error when it changes.
func (a *Agent) logTrouble(err error) {
	if err == nil || err.Error() == a.lastTrouble {
		return
	}
	a.lastTrouble = err.Error()
	a.Log.Error(err, "Retrying")
}
