package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/workload/guard"
)

// calm is the time after the last error of a watch when it has recovered: it pauses for less between
// two attempts.
const calm = 2 * time.Minute

// errRotated ends a session, so that the next one reads the new kubeconfig.
var errRotated = errors.New("the kubeconfig has changed since the cluster refused a request")

// session is one connection from its first informer to its end.
type session struct {
	connection *Connection
	// guard and dispatcher serve a remote cluster, nil for the local one.
	guard      *guard.Guard
	dispatcher *eviction.Dispatcher
	// isRotated reports whether the Secret has another kubeconfig by now.
	isRotated func(context.Context) bool
	kinds     []kind
	// parts run until their context ends, among them the cache of a remote cluster.
	parts []func(context.Context) error
	// undo frees what the session uses.
	undo []func()
	// failing is the time when watches began to fail, failed the last time.
	failing, failed time.Time
}

// kind is one kind of objects that the session reads.
type kind struct {
	name     string
	informer cache.Informer
}

// run returns when the context has ended or the cluster is lost, and all parts have ended.
func (s *session) run(ctx context.Context, l *link) error {
	group, own := errgroup.WithContext(ctx)
	for _, part := range s.parts {
		group.Go(func() error { return part(own) })
	}
	group.Go(func() error { return s.read(own, l) })
	group.Go(func() error {
		defer s.close()
		return s.watchOver(own, l)
	})
	err := group.Wait()
	if err != nil && s.guard != nil && ctx.Err() == nil {
		err = s.guard.Describe(err)
	}
	return err
}

func (s *session) close() {
	for _, undo := range s.undo {
		undo()
	}
}

// read waits until every kind is read, and then makes the connection available.
func (s *session) read(ctx context.Context, l *link) error {
	late := l.registry.clock.NewTimer(l.registry.pace.Sync)
	defer late.Stop()
	for _, k := range s.kinds {
		l.progress(k.name)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C():
			return fmt.Errorf("could not read %s within %s", s.missing(), l.registry.pace.Sync)
		case <-k.informer.HasSyncedChecker().Done():
		}
	}
	l.become(connected, s.connection)
	return nil
}

// missing returns the kinds that are not read yet.
func (s *session) missing() string {
	var names []string
	for _, k := range s.kinds {
		if !toolscache.IsDone(k.informer.HasSyncedChecker()) {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ", ")
}

// watchOver returns when a remote cluster is lost.
func (s *session) watchOver(ctx context.Context, l *link) (err error) {
	if s.guard == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	probes := l.registry.clock.NewTicker(l.registry.pace.Probe)
	defer probes.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case broken := <-s.guard.Broken:
			err = s.recheck(ctx, l, broken)
		case <-probes.C():
			err = s.probe(ctx)
		}
	}
	return err
}

// probe returns an error unless the cluster responds. After a refusal it checks for a new
// kubeconfig: watches continue with the old one for minutes.
func (s *session) probe(ctx context.Context) error {
	if err := s.guard.Probe(ctx); err != nil {
		return err
	}
	if s.guard.Refused() && s.isRotated(ctx) {
		return errRotated
	}
	return nil
}

// recheck decides about the error of a watch. The watch retries, which suffices unless it is
// not allowed to, the cluster is lost, or the errors go on: only they show that the cache is
// outdated.
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
