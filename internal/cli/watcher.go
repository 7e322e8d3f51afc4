package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// firstPause and longestPause are how long a watch that has broken off waits before it
	// begins again.
	firstPause, longestPause = time.Second, 15 * time.Second
	// watchFor is how long one watch lasts: a connection that is dead without anybody
	// knowing is not trusted for longer.
	watchFor = 5 * time.Minute
)

// sight is what is known of maintenances at one moment.
type sight struct {
	// maintenances are all that are watched; lost is why there is nothing newer, or nil.
	maintenances []*v1alpha1.NodeMaintenance
	lost         error
	// listed is true if the cluster has just answered; manager is then what is wrong with the
	// manager, for a picture.
	listed  bool
	manager []string
}

// watcher sees every change of maintenances. It lists and watches, again when a watch has
// broken off, and never asks at intervals.
type watcher struct {
	reached client.WithWatch
	// names are those that are watched; all if there are none.
	names []string

	known map[string]*v1alpha1.NodeMaintenance
	pause time.Duration
}

// halt is the error of who has seen enough.
type halt struct{ error }

// run calls see for every change, one at a time, until that returns an error, which it
// returns. That the cluster does not answer at first is an error, too; later it is shown,
// and tried again.
func (w *watcher) run(ctx context.Context, see func(sight) error) error {
	for {
		err := w.session(ctx, see)
		var stop halt
		switch {
		case errors.As(err, &stop):
			return stop.error
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && (w.known == nil || lasting(err)):
			return err
		case err == nil:
			continue
		}
		if err := see(sight{maintenances: w.all(), lost: err}); err != nil {
			return err
		}
		if err := w.rest(ctx); err != nil {
			return err
		}
	}
}

// lasting is true of errors that no second try makes good.
func lasting(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err)
}

// rest waits before the next try, each time for longer.
func (w *watcher) rest(ctx context.Context) error {
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

// session lists once and watches from there. It returns nil when the watch has ended as
// watches do.
func (w *watcher) session(ctx context.Context, see func(sight) error) error {
	list := &v1alpha1.NodeMaintenanceList{}
	options := &client.ListOptions{}
	if len(w.names) == 1 {
		options.FieldSelector = onlyName(w.names[0])
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
		return errors.New("watch nodemaintenances: the connection has ended")
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
	all := make([]*v1alpha1.NodeMaintenance, 0, len(w.known))
	for _, m := range w.known {
		all = append(all, m)
	}
	return all
}
