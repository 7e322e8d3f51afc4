package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/workload/guard"
)

// calm is how long after the error of a watch it is known to have recovered: it
// never pauses that long between two attempts.
const calm = 2 * time.Minute

// session is one connection from its first informer to its end.
type session struct {
	connection *Connection
	// guard is the way to a remote cluster; nil for the one that Ebbtide runs in.
	guard *guard.Guard
	// dispatcher is that of a remote cluster, which is told of its disruption budgets here;
	// nil for the one that Ebbtide runs in.
	dispatcher *eviction.Dispatcher
	// rotated reports whether the cluster has another kubeconfig by now.
	rotated func(context.Context) bool
	kinds   []kind
	// parts run until their context ends, among them the cache.
	parts []func(context.Context) error
	// undo gives back what the session holds.
	undo    []func()
	running sync.WaitGroup
	// failing is since when watches have failed, failed when one last did.
	failing, failed time.Time
}

// kind is one kind of objects that the session reads.
type kind struct {
	name     string
	informer cache.Informer
}

// run returns when the context has ended or the cluster is lost.
func (s *session) run(ctx context.Context, l *link) error {
	ended := make(chan error, len(s.parts))
	for _, part := range s.parts {
		s.running.Go(func() { ended <- part(ctx) })
	}
	synced := make(chan struct{})
	s.running.Go(func() {
		if s.sync(ctx) {
			close(synced)
		}
	})
	l.progress(s.missing())
	err := s.watchOver(ctx, l, ended, synced)
	if err != nil && s.guard != nil && ctx.Err() == nil {
		err = s.guard.Describe(err)
	}
	return err
}

func (s *session) watchOver(ctx context.Context, l *link, ended <-chan error, synced <-chan struct{}) (err error) {
	pace, clock := l.registry.pace, l.registry.clock
	probes := clock.NewTicker(pace.Probe)
	defer probes.Stop()
	late := clock.NewTimer(pace.Sync)
	defer late.Stop()
	var broken <-chan error
	if s.guard != nil {
		broken = s.guard.Broken
	}
	for err == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-ended:
			err = fmt.Errorf("a part of the connection has ended: %w", err)
		case <-late.C():
			if missing := s.missing(); missing != "" {
				err = fmt.Errorf("could not read %s within %s", missing, pace.Sync)
			}
		case <-synced:
			synced = nil
			l.connected(s.connection)
		case err = <-broken:
			err = s.recheck(ctx, l, err)
		case <-probes.C():
			err = s.probe(ctx)
			l.progress(s.missing())
		}
	}
	return err
}

// errRotated ends a session, so that the next one reads the other kubeconfig.
var errRotated = errors.New("the kubeconfig has changed since the cluster refused a request")

// probe asks the cluster whether it is there. After a refusal it looks for another
// kubeconfig: watches go on by the old one for minutes.
func (s *session) probe(ctx context.Context) error {
	if s.guard == nil {
		return nil
	}
	if err := s.guard.Probe(ctx); err != nil {
		return err
	}
	if s.guard.Refused() && s.rotated(ctx) {
		return errRotated
	}
	return nil
}

// recheck is what follows from the error of a watch. It tries again by itself,
// which is enough unless it is not allowed to, the cluster is lost, or that does
// not help: nothing but these errors tells that what is read gets old.
func (s *session) recheck(ctx context.Context, l *link, err error) error {
	if guard.IsBreach(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	now, stale := l.registry.clock.Now(), l.registry.pace.Stale
	if now.Sub(s.failed) > calm {
		s.failing = now
	}
	s.failed = now
	if now.Sub(s.failing) > stale {
		return fmt.Errorf("watches have failed for %s: %w", stale, err)
	}
	return s.probe(ctx)
}

// sync waits until everything is read; false if the context ends before.
func (s *session) sync(ctx context.Context) bool {
	for _, k := range s.kinds {
		select {
		case <-ctx.Done():
			return false
		case <-k.informer.HasSyncedChecker().Done():
		}
	}
	return true
}

// missing are the kinds that are not read yet.
func (s *session) missing() string {
	var names []string
	for _, k := range s.kinds {
		if !toolscache.IsDone(k.informer.HasSyncedChecker()) {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ", ")
}

// close returns when everything has ended whose context has ended.
func (s *session) close() {
	for _, undo := range s.undo {
		undo()
	}
	s.running.Wait()
}
