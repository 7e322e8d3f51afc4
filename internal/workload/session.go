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
)

// calm is how long after the error of a watch it is known to have recovered: it
// never pauses that long between two attempts.
const calm = 2 * time.Minute

// session is one connection from its first informer to its end.
type session struct {
	connection *Connection
	kinds      []kind
	// probe asks the cluster whether it is there.
	probe func(context.Context) error
	// broken has errors of watches; nil if nobody tells.
	broken <-chan error
	// refused is told when the cluster refuses a request of the user of the kubeconfig, and
	// rotated whether there is another kubeconfig by now; nil if there is none.
	refused <-chan struct{}
	rotated func(context.Context) bool
	// doubted is true from the first refusal on.
	doubted bool
	// parts run until their context ends, among them the cache.
	parts []func(context.Context) error
	// describe makes an error fit to be shown.
	describe func(error) error
	// release gives back what the session holds.
	release func()
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
	return s.watchOver(ctx, l, events{ended: ended, synced: synced})
}

// events are what a session waits for besides the time.
type events struct {
	ended  <-chan error
	synced <-chan struct{}
}

func (s *session) watchOver(ctx context.Context, l *link, events events) error {
	pace := l.registry.pace
	probes := l.registry.clock.NewTicker(pace.Probe)
	defer probes.Stop()
	late := l.registry.clock.NewTimer(pace.Sync)
	defer late.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-events.ended:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err = fmt.Errorf("a part of the connection has ended: %w", err)
		case <-late.C():
			if missing := s.missing(); missing != "" {
				err = fmt.Errorf("could not read %s within %s", missing, pace.Sync)
			}
		case <-events.synced:
			events.synced = nil
			l.connected(s.connection)
		case err = <-s.broken:
			err = s.recheck(ctx, l, err)
		case <-s.refused:
			err = s.doubt(ctx)
		case <-probes.C():
			err = errors.Join(s.probe(ctx), s.reread(ctx))
			l.progress(s.missing())
		}
		if err != nil {
			return s.describe(err)
		}
	}
}

// errRotated ends a session, so that the next one has the other kubeconfig.
var errRotated = errors.New("the kubeconfig has changed since the cluster refused a request")

// doubt notes that the cluster has refused something.
func (s *session) doubt(ctx context.Context) error {
	if s.doubted {
		return nil
	}
	s.doubted = true
	return s.reread(ctx)
}

// reread looks for another kubeconfig after the cluster has refused something to the user of
// this one: at once, and, as it may come later, with each probe. Watches go on by the old one
// for minutes.
func (s *session) reread(ctx context.Context) error {
	if s.doubted && s.rotated(ctx) {
		return errRotated
	}
	return nil
}

// recheck is what follows from the error of a watch. It tries again by itself,
// which is enough unless it is not allowed to, the cluster is lost, or that does
// not help: nothing but these errors tells that what is read gets old.
func (s *session) recheck(ctx context.Context, l *link, err error) error {
	if breachIn(err) != nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
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
	s.release()
	s.running.Wait()
}
