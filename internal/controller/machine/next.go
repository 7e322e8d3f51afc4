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

// next returns when the next pass is due without an event. Failures are logged and retried here: as
// an error of the pass they would discard RequeueAfter.
func (r *reconciler) next(ctx context.Context, seen *observed, due time.Duration, failures ...error) reconcile.Result {
	key := client.ObjectKeyFromObject(seen.Machine)
	failed := utilerrors.NewAggregate(failures)
	hard := withoutStale(failed)
	if failed != nil && hard == nil {
		// The caches may not show the newer state yet.
		log.FromContext(ctx).V(1).Info("Retrying a stale decision", "reason", failed.Error())
		r.stale.Store(key, true)
	} else {
		r.stale.Delete(key)
	}
	if failed == nil && !seen.unread {
		r.failures.Forget(key)
		return reconcile.Result{RequeueAfter: due}
	}
	pause := r.failures.When(key)
	switch {
	case hard != nil:
		log.FromContext(ctx).Error(hard, "Retrying a failed pass")
	case failed != nil:
		pause = min(pause, staleRetry)
	}
	return reconcile.Result{RequeueAfter: kube.Soonest(due, pause)}
}

func withoutStale(failed error) error {
	return utilerrors.FilterOut(utilerrors.NewAggregate([]error{failed}), kube.IsStale)
}
