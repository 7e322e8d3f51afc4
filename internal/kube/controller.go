package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// firstRetry and longestRetry bound the default back-off. That of controller-runtime grows to a
// quarter of an hour.
const firstRetry, longestRetry = 5 * time.Millisecond, time.Minute

// Controller configures a controller whose hanging requests do not block others.
type Controller[R comparable] struct {
	Reconciler reconcile.TypedReconciler[R]
	// Share returns the share of an item, such as its namespace; see newShares. If nil, each item
	// has its own.
	Share func(R) string
	// Limit is the number of workers of a share.
	Limit int
	// RateLimiter spaces retries. Defaults to one from 5 ms to a minute.
	RateLimiter workqueue.TypedRateLimiter[R]
	// Timeout ends a reconciliation whose requests hang; 0 is never.
	Timeout time.Duration
}

// ByNamespace shares the workers of a controller by namespace.
func ByNamespace(reconciler reconcile.Reconciler, limit int) Controller[reconcile.Request] {
	return Controller[reconcile.Request]{
		Reconciler: reconciler, Limit: limit, Share: func(request reconcile.Request) string { return request.Namespace },
	}
}

func (c Controller[R]) options() controller.TypedOptions[R] {
	options := controller.TypedOptions[R]{
		Reconciler: c.Reconciler, MaxConcurrentReconciles: places, RateLimiter: c.RateLimiter, ReconciliationTimeout: c.Timeout,
	}
	if options.RateLimiter == nil {
		options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstRetry, longestRetry)
	}
	if c.Share != nil {
		options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
			return newShares(priorityqueue.New(name, func(o *priorityqueue.Opts[R]) { o.RateLimiter = limiter }), c.Limit, places, c.Share)
		}
	}
	return options
}

// AddController adds a controller with its sources to the manager. It fails if a source cannot be
// watched or the name is taken.
func AddController[R comparable](mgr manager.Manager, name string, of Controller[R], sources []source.TypedSource[R]) error {
	c, err := controller.NewTyped(name, mgr, of.options())
	if err != nil {
		return fmt.Errorf("add the %s controller: %w", name, err)
	}
	return follow(c, name, sources)
}

// RunController runs a controller until the context ends. It may run again under the same name
// afterwards. It fails if a source cannot be watched.
func RunController[R comparable](
	ctx context.Context, mgr manager.Manager, name string, of Controller[R], sources []source.TypedSource[R],
) error {
	options, again := of.options(), true
	options.SkipNameValidation, options.Logger = &again, mgr.GetLogger()
	c, err := controller.NewTypedUnmanaged(name, options)
	if err != nil {
		return fmt.Errorf("make the %s controller: %w", name, err)
	}
	if err := follow(c, name, sources); err != nil {
		return err
	}
	return c.Start(ctx)
}

func follow[R comparable](c controller.TypedController[R], name string, sources []source.TypedSource[R]) error {
	for _, source := range sources {
		if err := c.Watch(source); err != nil {
			return fmt.Errorf("watch for the %s controller: %w", name, err)
		}
	}
	return nil
}
