// Package evacuation carries out what core/evacuation decides: it activates evacuators, evicts
// pods as soon as their budgets allow, and cleans up. A refused eviction does not occupy a
// worker: it waits in memory until its budget changes or its time comes. Nothing in memory is
// needed after a restart.
package evacuation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Options configures the controller.
type Options struct {
	// Workers bounds the evacuations of a namespace that are worked on at the same time. Defaults to
	// 32.
	Workers int
	// Surge says which Deployments surge. Defaults to surge.Annotated.
	Surge surge.Mode
	// Dispatcher evicts in the cluster that Ebbtide runs in. The controller passes all disruption
	// budgets to it.
	Dispatcher *eviction.Dispatcher
	// Skew knows what time it is.
	Skew *kube.Skew
}

const defaultWorkers = 32

type reconciler struct {
	// client reads from the cache, live from the API server.
	client client.Client
	live   client.Reader
	// emit publishes events, each on the object that it is about.
	emit func(...event.Event)
	// now is the time for decisions, clock measures durations.
	now       kube.Now
	clock     clock.PassiveClock
	began     kube.Began
	surge     surge.Mode
	metrics   *metrics
	evictions *eviction.Caller
	// wake has evacuations reconciled at once, before all others.
	wake func(...types.NamespacedName)
	// known are the evacuations whose pods are known to be in the cache, or gone.
	known knownPods
	// bulk deletes many objects at once, which client does not: it waits for the cache
	// to show what it has written, object by object.
	bulk deleter
	// sweepLater has the complete evacuations of a namespace deleted after a time.
	sweepLater func(namespace string, after time.Duration)
}

// Add registers the controller with a manager whose client reads from a cache
// with kube.CacheOptions, consistent with its own writes.
//
// Errors: the manager's config is invalid, a watch cannot be set up, or the
// controller was added before.
func Add(mgr manager.Manager, options Options) error {
	evictor, err := kube.NewEvictor(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	bulk, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("make a client that deletes many objects: %w", err)
	}
	r := &reconciler{
		client: mgr.GetClient(), bulk: bulk, live: mgr.GetAPIReader(),
		emit: kube.Emitter(mgr.GetEventRecorder("ebbtide")), now: options.Skew.Now, clock: clock.RealClock{},
		surge: options.Surge, metrics: newMetrics(crmetrics.Registry),
	}
	r.evictions = options.Dispatcher.Caller(eviction.CallerOptions{
		Evictor: evictor, Wake: func(keys ...types.NamespacedName) { r.wake(keys...) },
	})
	if options.Workers <= 0 {
		options.Workers = defaultWorkers
	}
	sources := append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, kube.AllOf(r.client, &v1alpha1.EvacuationList{})))
	return kube.AddController(mgr, "evacuation", kube.ByNamespace(r, options.Workers), sources)
}

// Reconcile takes one evacuation one step further.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Name == "" {
		return r.sweep(ctx, request.Namespace)
	}
	defer r.evictions.Yield(request.NamespacedName)
	seen, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	if seen == nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	decision := core.Decide(*seen)
	if goOn, err := r.record(ctx, seen, decision); err != nil || !goOn {
		return reconcile.Result{}, kube.WithoutStale(ctx, err)
	}
	again, actErr := r.act(ctx, seen, decision)
	due, reportErr := r.report(ctx, seen, decision)
	if err := errors.Join(kube.WithoutStale(ctx, actErr), kube.WithoutStale(ctx, reportErr)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: kube.Soonest(decision.RequeueAfter, again, due)}, nil
}

// forget drops everything that is remembered of an evacuation that is gone.
func (r *reconciler) forget(key types.NamespacedName) {
	r.evictions.Forget(key)
	r.metrics.gone(key)
	r.known.forget(key)
}
