// Package surge replaces pods of Deployments before they are evicted, as evacuator
// deployment.apps.k8s.io. core/surge decides for one Deployment at a time. All state is in the
// annotations of pods and in Evacuations; memory only says which events to drop.
package surge

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

	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// workers bounds the Deployments of a namespace that are worked on at the same time.
	workers = 16
	// staleRetry delays another read of a cache that is behind.
	staleRetry = 100 * time.Millisecond
)

// Options configures the controller.
type Options struct {
	// Surge says which Deployments surge. With surge.Off, pods that are detached
	// already are given back. Defaults to surge.Annotated.
	Surge core.Mode
	// Skew knows what time it is.
	Skew *kube.Skew
}

// item names a Deployment by its UID or, without a UID, an Evacuation whose pod is not known yet.
type item struct {
	types.NamespacedName
	uid types.UID
}

// share returns its namespace.
func (it item) share() string { return it.Namespace }

type reconciler struct {
	// client reads from the cache, live from the API server.
	client client.Client
	live   client.Reader
	// emit publishes events, each on the object that it is about.
	emit    func(...event.Event)
	now     kube.Now
	mode    core.Mode
	metrics *metrics
	busy    *busy
	// endpoints indexes the pods of Services.
	endpoints *endpoints
	// written are the pods that were last written for each Deployment.
	written kube.Written[item]
	// wake has an item reconciled.
	wake func(item)
}

// Add registers the controller with a manager whose client reads from a cache
// with kube.CacheOptions and kube.IndexFields, consistent with its own writes.
//
// Errors: a watch cannot be set up, or the controller was added before.
func Add(mgr manager.Manager, options Options) error {
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(),
		emit: kube.Emitter(mgr.GetEventRecorder("ebbtide")), now: options.Skew.Now,
		mode: options.Surge, metrics: newMetrics(crmetrics.Registry), busy: newBusy(), endpoints: newEndpoints(clock.RealClock{}),
	}
	return kube.AddController(mgr, "surge", kube.Controller[item]{Reconciler: r, Share: item.share, Limit: workers}, append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, r.held)))
}

// Reconcile takes the pods of one Deployment one step further.
func (r *reconciler) Reconcile(ctx context.Context, it item) (reconcile.Result, error) {
	decision, unread, err := r.decide(ctx, it)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := errors.Join(unread, r.act(ctx, it, decision)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: decision.RequeueAfter}, nil
}

// decide observes and decides. What could not be read of a Deployment's claims
// is part of the decision, and is returned to be read again.
func (r *reconciler) decide(ctx context.Context, it item) (decision core.Decision, unread, err error) {
	if it.uid == "" {
		decision, err = r.decideAlone(ctx, it)
		return decision, nil, err
	}
	snapshot, unread, err := r.observe(ctx, it)
	if err != nil {
		return core.Decision{}, nil, fmt.Errorf("observe: %w", err)
	}
	return core.Decide(snapshot), unread, nil
}
