package evictionrequest

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// PodHandler is what a Reconciler is told of pods by.
func PodHandler(r *Reconciler) handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	return r.podHandler()
}

// OfEviction is what is looked at because of an Eviction.
func OfEviction(ctx context.Context, e *lifecyclev1alpha1.Eviction) []reconcile.Request {
	return ofObject(ctx, e)
}

// NewIdleRole is one that finds out nothing itself.
func NewIdleRole(mode core.Mode) *Role {
	return &Role{options: RoleOptions{Mode: mode}, emit: func(...event.Event) {}, metrics: newMetrics(prometheus.NewRegistry())}
}

// Become takes the role that a situation gives.
func (r *Role) Become(ctx context.Context, s core.Situation) { r.become(ctx, s) }

// Lease is that of an Ebbtide.
type Lease = lease

// NewLease is that of a manager that knows nothing yet.
func NewLease(c client.Client, holder string) *Lease {
	return &lease{client: c, holder: holder, now: time.Now}
}

// Take takes it or renews it.
func (l *lease) Take(ctx context.Context, force bool) (holder string, err error) {
	return l.take(ctx, force)
}

// Holder is whose it is to be.
func (l *lease) Holder() string { return l.holder }

// Age has what another holder has last written be seen earlier.
func (l *lease) Age(by time.Duration) { l.since = l.since.Add(-by) }
