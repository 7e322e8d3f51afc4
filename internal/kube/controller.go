package kube

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// firstRetry and longestRetry bound the back-off of a controller that fails, unless
// it has its own. The default of controller-runtime grows to a quarter of an hour.
const firstRetry, longestRetry = 5 * time.Millisecond, time.Minute

// AddController has the manager run a controller on what its sources lead to.
//
// Errors: a source cannot be watched, or the name is taken.
func AddController[R comparable](
	mgr manager.Manager, name string, options controller.TypedOptions[R], sources []source.TypedSource[R],
) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRetries[R]()
	}
	c, err := controller.NewTyped(name, mgr, options)
	if err != nil {
		return fmt.Errorf("add the %s controller: %w", name, err)
	}
	for _, source := range sources {
		if err := c.Watch(source); err != nil {
			return fmt.Errorf("watch for the %s controller: %w", name, err)
		}
	}
	return nil
}

func newRetries[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstRetry, longestRetry)
}
