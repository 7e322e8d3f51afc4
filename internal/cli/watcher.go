package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// firstPause and longestPause bound the pause after a lost connection.
	firstPause, longestPause = time.Second, 15 * time.Second
	// watchFor bounds one watch, as its connection may be dead without an error.
	watchFor = 5 * time.Minute
)

// sight is the state of the maintenances at one moment.
type sight struct {
	// lost is the error of a lost connection, or nil.
	maintenances []*v1alpha1.NodeMaintenance
	lost         error
	// listed is true after a list; manager are then the problems of the manager, for the live view.
	listed  bool
	manager []string
}

// watcher lists and watches maintenances, and reconnects after a lost connection.
type watcher struct {
	reached client.WithWatch
	// names are the watched maintenances, and of the labels that they have; all if both are empty.
	names []string
	of    client.MatchingLabels

	known map[string]*v1alpha1.NodeMaintenance
	pause time.Duration
}

// halt is an error of the caller, which ends the watcher.
type halt struct{ error }

// run calls see for every change, one at a time, until see returns an error. It also returns an
// error of the first connection; later ones are passed to see and retried.
func (w *watcher) run(ctx context.Context, see func(sight) error) error {
	for {
		err := w.session(ctx, see)
		var stop halt
		switch {
		case errors.As(err, &stop):
			return stop.error
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && (w.known == nil || isPermanent(err)):
			return err
		case err == nil:
			continue
		}
		if err := see(sight{maintenances: w.all(), lost: err}); err != nil {
			return err
		}
		if err := w.backOff(ctx); err != nil {
			return err
		}
	}
}

// isPermanent reports whether a retry is useless.
func isPermanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err)
}

// backOff waits before the next attempt, longer each time.
func (w *watcher) backOff(ctx context.Context) error {
	w.pause = min(max(2*w.pause, firstPause), longestPause)
	timer := time.NewTimer(w.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// session lists once and watches from there. It returns nil if the watch expired.
func (w *watcher) session(ctx context.Context, see func(sight) error) error {
	list := &v1alpha1.NodeMaintenanceList{}
	options := &client.ListOptions{}
	if len(w.names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", w.names[0])
	}
	if len(w.of) > 0 {
		w.of.ApplyToList(options)
	}
	if err := w.reached.List(ctx, list, options); err != nil {
		return fmt.Errorf("list nodemaintenances: %w", err)
	}
	w.known, w.pause = map[string]*v1alpha1.NodeMaintenance{}, 0
	for i := range list.Items {
		w.note(&list.Items[i])
	}
	if err := see(sight{maintenances: w.all(), listed: true}); err != nil {
		return halt{err}
	}
	seconds := int64(watchFor.Seconds())
	options.Raw = &metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: &seconds, AllowWatchBookmarks: true}
	began, err := w.reached.Watch(ctx, &v1alpha1.NodeMaintenanceList{}, options)
	if err != nil {
		return fmt.Errorf("watch nodemaintenances: %w", err)
	}
	defer began.Stop()
	return w.listen(began, see)
}

func (w *watcher) listen(to watch.Interface, see func(sight) error) error {
	started := time.Now()
	for event := range to.ResultChan() {
		m, ok := event.Object.(*v1alpha1.NodeMaintenance)
		switch {
		case event.Type == watch.Error:
			err := apierrors.FromObject(event.Object)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return nil
			}
			return fmt.Errorf("watch nodemaintenances: %w", err)
		case event.Type == watch.Bookmark || !ok:
			continue
		case event.Type == watch.Deleted:
			delete(w.known, m.Name)
		default:
			w.note(m)
		}
		if err := see(sight{maintenances: w.all()}); err != nil {
			return halt{err}
		}
	}
	if time.Since(started) < firstPause {
		return errors.New("watch nodemaintenances: connection closed")
	}
	return nil
}

func (w *watcher) note(m *v1alpha1.NodeMaintenance) {
	if len(w.names) == 0 || slices.Contains(w.names, m.Name) {
		m.ManagedFields = nil
		w.known[m.Name] = m
	}
}

func (w *watcher) all() []*v1alpha1.NodeMaintenance {
	return slices.AppendSeq([]*v1alpha1.NodeMaintenance{}, maps.Values(w.known))
}

// within bounds how long a verb waits; 0 is no bound.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, errTimeout)
}

// await watches a maintenance until done returns true for its state, which is nil once it is
// deleted. It reconnects after a lost connection.
//
// Errors: context.Canceled; errTimeout after the deadline of ctx; the first connection fails.
func await(ctx context.Context, reached client.WithWatch, name string, done func(*v1alpha1.NodeMaintenance) bool) error {
	w := &watcher{reached: reached, names: []string{name}}
	err := w.run(ctx, func(s sight) error {
		if s.lost != nil {
			return nil
		}
		var m *v1alpha1.NodeMaintenance
		for _, one := range s.maintenances {
			m = one
		}
		if done(m) {
			return errEnded
		}
		return nil
	})
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// watching lists and watches the objects that have these fields.
func watching(reached client.WithWatch, list client.ObjectList, having fields.Selector) cache.ListerWatcher {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{FieldSelector: having, Raw: &raw}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into, _ := list.DeepCopyObject().(client.ObjectList)
			return into, reached.List(ctx, into, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			into, _ := list.DeepCopyObject().(client.ObjectList)
			return reached.Watch(ctx, into, options(raw))
		},
	}
}
