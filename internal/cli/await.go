package cli

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

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
