// Package evictor is imperative-eviction.k8s.io/evictor, the responder of the API group
// lifecycle.k8s.io that comes last, while Ebbtide is the controller there.
//
// It evicts by the queue of internal/eviction, as Evacuations do, so that a budget that
// opens is used at once, and locks and evacuators hold. It is a shell of its own: what it
// works on are Evictions, and Evacuations have to do with it only where our webhook asks
// for one. What it reports is decided in core/evictionrequest.
package evictor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Options configures the evictor.
type Options struct {
	// Workers is how many pods are worked on at the same time. Defaults to 32.
	Workers int
	// LongestLock is how long a lock of a disruption budget may hold. Defaults to
	// budget.LongestLock.
	LongestLock time.Duration
	// Traffic is told of the evictions; it may be nil.
	Traffic *eviction.Traffic
	// Served runs it while the API is served.
	Served *kube.Served
	// Acts reports whether Ebbtide is the controller, OnActive has wake called when it
	// becomes that.
	Acts     func() bool
	OnActive func(ctx context.Context, wake func(context.Context))
	// Skew knows what time it is at the API server.
	Skew *kube.Skew
}

const defaultWorkers = 32

type reconciler struct {
	// client reads from the cache, live from the API server.
	client client.Client
	live   client.Reader
	// reports writes what the evictor says: with a client of its own it has a share of
	// requests of its own, too.
	reports    client.Client
	acts       func() bool
	now        func() time.Time
	dispatcher *eviction.Dispatcher
	// wake has Evictions reconciled at once, before all others.
	wake func(...types.NamespacedName)
	// pods are the UIDs of the pods that the dispatcher knows, by Eviction.
	pods sync.Map
}

// Add has the evictor run while the API is served.
//
// Errors: the config of the manager is invalid.
func Add(mgr manager.Manager, options Options) error {
	evictor, err := kube.NewEvictor(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	reports, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client that reports: %w", err)
	}
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), reports: reports,
		acts: options.Acts, now: options.Skew.Server, wake: func(...types.NamespacedName) {},
	}
	r.dispatcher = eviction.NewDispatcher(eviction.DispatcherOptions{
		Evictor: evictor.ForRequests(), Reader: r.client, Clock: clock.RealClock{}, Now: options.Skew.Now, Jitter: rand.Float64,
		LongestPause: evacuation.LongestPause, LongestLock: options.LongestLock, Traffic: options.Traffic,
		Results: kube.Register(crmetrics.Registry, eviction.NewResults()),
		Wake:    func(keys ...types.NamespacedName) { r.wake(keys...) },
	})
	if options.Workers <= 0 {
		options.Workers = defaultWorkers
	}
	options.Served.Index(&lifecyclev1alpha1.Eviction{}, podField, podUID)
	options.Served.Part(func(ctx context.Context) error {
		return kube.RunController(ctx, mgr, "evictor",
			controller.Options{Reconciler: r, MaxConcurrentReconciles: options.Workers}, r.sources(mgr.GetCache(), options.OnActive))
	})
	return nil
}

// Reconcile evicts the pod of one Eviction, if it is the evictor's turn.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	defer r.dispatcher.Yield(key)
	if !r.acts() {
		r.forget(key)
		return reconcile.Result{}, nil
	}
	seen, err := r.observe(ctx, key)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	if seen == nil {
		r.forget(key)
		return reconcile.Result{}, nil
	}
	decision := core.DecideEvictor(*seen)
	again, err := r.act(ctx, key, seen, decision)
	if err != nil {
		return reconcile.Result{}, kube.WithoutStale(ctx, err)
	}
	if decision.Evict {
		// What was refused just now may be worth a report.
		due := r.unreported(key, seen)
		decision = core.DecideEvictor(*seen)
		again = kube.Soonest(again, due)
	}
	if decision.Report != nil {
		if err := kube.WithoutStale(ctx, r.report(ctx, key, seen, decision)); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: kube.Soonest(again, core.HeartbeatEvery)}, nil
	}
	return reconcile.Result{RequeueAfter: kube.Soonest(again, decision.RequeueAfter)}, nil
}

// forget drops everything that is remembered of an Eviction in which it is not our turn.
func (r *reconciler) forget(key types.NamespacedName) {
	r.dispatcher.Forget(key)
	r.pods.Delete(key)
}

// ours reports whether it is our turn, and we have not said that we are done with it.
func ours(e *lifecyclev1alpha1.Eviction) bool {
	own := core.ResponderOf(&e.Status, core.DefaultEvictor)
	return own != nil && own.CompletionTime == nil && !core.Final(&e.Status) &&
		core.StateOf(&e.Status, core.DefaultEvictor) == lifecyclev1alpha1.ResponderStateActive
}
