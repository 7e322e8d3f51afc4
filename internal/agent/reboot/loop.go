//go:build linux

// Package reboot reports whether a node requires a reboot, and reboots it when a NodeMaintenance
// asks for it. It decides nothing: internal/core/nodeagent/reboot does.
package reboot

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/disk"
	"ebbtide.dev/ebbtide/internal/agent/inotify"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent/reboot"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// relist is the interval of reading the sentinel without events, and of failed calls.
	relist     = 20 * time.Second
	callWithin = 10 * time.Second
	// maxPackages bounds the file with the packages, in bytes.
	maxPackages = 64 << 10
)

// Logind reboots the machine.
type Logind interface {
	Reboot(ctx context.Context) error
}

// Options of a Loop.
type Options struct {
	BootID string
	// Sentinel is the file that asks for a reboot; empty reports nothing.
	Sentinel string
	// Enabled has the node reboot for NodeMaintenances.
	Enabled bool
	Logind  Logind
	Client  client.Client
	Emit    func(...event.Event)
	Log     logr.Logger
}

// Agent is the agent beside the loop.
type Agent interface {
	// NodeAndPods returns the node and its pods; nil is unknown.
	NodeAndPods() (*corev1.Node, []*corev1.Pod)
}

// Loop reports and reboots.
type Loop struct {
	Options

	wake chan struct{}
	// Fields of the one goroutine of Run.
	reported    bool
	requested   time.Time
	lastTrouble string
}

// New returns a loop that does not run yet.
func New(o Options) *Loop { return &Loop{Options: o, wake: make(chan struct{}, 1)} }

// Wake requests another pass.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run works until the context ends.
func (l *Loop) Run(ctx context.Context, agent Agent) {
	watch, err := inotify.Start(ctx, l.Wake)
	l.logTrouble(err)
	for ctx.Err() == nil {
		if l.Sentinel != "" {
			watch.Follow(filepath.Dir(l.Sentinel))
		}
		timer := time.NewTimer(l.pass(ctx, agent))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.wake:
		}
		timer.Stop()
	}
}

// pass observes, decides and acts, and returns when the next pass is due.
func (l *Loop) pass(ctx context.Context, agent Agent) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	node, _ := agent.NodeAndPods()
	s := core.Snapshot{
		Now: time.Now(), BootID: l.BootID, Node: node, Sentinel: l.readSentinel(), Fresh: !l.reported,
		Enabled: l.Enabled, Requested: l.requested,
	}
	if l.Enabled {
		s.Maintenances = l.readMaintenances(ctx, node)
	}
	d := core.Decide(s)
	if d.Condition != nil {
		err := kube.PublishConditions(ctx, l.Client, node, kube.Conditions{Set: []corev1.NodeCondition{*d.Condition}})
		l.logTrouble(err)
		l.reported = l.reported || err == nil
	}
	if d.Reboot {
		l.reboot(ctx, d.Events)
	}
	if d.After > 0 {
		return min(d.After, relist)
	}
	return relist
}

func (l *Loop) reboot(ctx context.Context, events []event.Event) {
	l.requested = time.Now()
	l.Emit(events...)
	l.Log.Info("Rebooting the node")
	l.logTrouble(l.Logind.Reboot(ctx))
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=get

// readMaintenances reads those that the node is handed over to. What cannot be read asks for
// nothing.
func (l *Loop) readMaintenances(ctx context.Context, node *corev1.Node) (all []*v1alpha1.NodeMaintenance) {
	for _, name := range core.Candidates(node) {
		m := &v1alpha1.NodeMaintenance{}
		err := l.Client.Get(ctx, client.ObjectKey{Name: name}, m)
		if err == nil {
			all = append(all, m)
		} else if !apierrors.IsNotFound(err) {
			l.logTrouble(err)
		}
	}
	return all
}

// readSentinel returns whether the file exists; nil if that is unknown.
func (l *Loop) readSentinel() *core.Sentinel {
	if l.Sentinel == "" {
		return nil
	}
	file := disk.File{Dir: filepath.Dir(l.Sentinel), Name: filepath.Base(l.Sentinel), Max: maxPackages}
	_, err := file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return &core.Sentinel{}
	}
	if err != nil {
		l.logTrouble(err)
		return nil
	}
	file.Name += ".pkgs"
	packages, err := file.Read()
	if err != nil {
		packages = nil // Not every distribution has this file.
	}
	return &core.Sentinel{Exists: true, Packages: strings.Split(string(packages), "\n")}
}

// logTrouble logs an error when it changes.
func (l *Loop) logTrouble(err error) {
	if err == nil || err.Error() == l.lastTrouble {
		return
	}
	l.lastTrouble = err.Error()
	l.Log.Error(err, "Retrying")
}
