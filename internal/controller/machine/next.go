package machine

import (
	"context"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/kube"
)

// next says when the next pass is due if no event asks for it before. What
// failed is logged here and tried again; it is no error of the pass, because that
// would forget when time alone changes the decision.
func (r *reconciler) next(ctx context.Context, seen *observed, due time.Duration, failures ...error) reconcile.Result {
	key := client.ObjectKeyFromObject(seen.Machine)
	failed := utilerrors.NewAggregate(failures)
	hard := withoutOutdated(failed)
	if failed != nil && hard == nil {
		// The caches may not tell of what has made it old: the next pass asks.
		log.FromContext(ctx).V(1).Info("Decided on old state and is decided again", "because", failed.Error())
		r.outdated.Store(key, true)
	} else {
		r.outdated.Delete(key)
	}
	if failed == nil && !seen.unread {
		r.failures.Forget(key)
		return reconcile.Result{RequeueAfter: due}
	}
	pause := r.failures.When(key)
	switch {
	case hard != nil:
		log.FromContext(ctx).Error(hard, "Part of the pass failed and is tried again")
	case failed != nil:
		pause = min(pause, oldRetry)
	}
	return reconcile.Result{RequeueAfter: kube.Soonest(due, pause)}
}

// withoutOutdated removes the failures that a look at newer state resolves.
func withoutOutdated(failed error) error {
	return utilerrors.FilterOut(utilerrors.NewAggregate([]error{failed}), kube.IsStale)
}
