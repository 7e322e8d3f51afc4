// Package evictor is the responders of the API group lifecycle.k8s.io that are Ebbtide's:
// imperative-eviction.k8s.io/evictor, which comes last, while Ebbtide is the controller there,
// and ebbtide.dev/deployment-surge, whoever is.
//
// A pod has one engine. One that is to be replaced, that has evacuators, or that somebody has
// evacuated already, leaves by its Evacuation, which is asked for in our turn, and whose
// progress is told of the Eviction. All others are evicted by the queue of
// internal/eviction, as Evacuations do, so that a budget that opens is used at once, and locks
// hold. What is asked and reported is decided in core/evictionrequest.
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
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Options configures the evictor.
type Options struct {
	// Workers is how many pods of a namespace are worked on at the same time. Defaults to 32.
	Workers int
	// LongestLock is how long a lock of a disruption budget may hold. Defaults to
	// budget.LongestLock.
	LongestLock time.Duration
	// Surge says which Deployments surge.
	Surge surge.Mode
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
	reports client.Client
	acts    func() bool
	now     func() time.Time
	// clock is what Evacuations go by.
	clock      kube.Now
	began      kube.Began
	surge      surge.Mode
	emit       func(...event.Event)
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
		acts: options.Acts, now: options.Skew.Server, clock: options.Skew.Now, surge: options.Surge,
		emit: kube.Emitter(mgr.GetEventRecorder("ebbtide")), wake: func(...types.NamespacedName) {},
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
	options.Served.Index(&lifecyclev1alpha1.Eviction{}, kube.EvictionPodField, kube.EvictionPod)
	options.Served.Part(func(ctx context.Context) error {
		return kube.RunController(ctx, mgr, "evictor",
			controller.Options{Reconciler: r, MaxConcurrentReconciles: kube.Places, NewQueue: kube.Shares(options.Workers, kube.ShareOfNamespace)}, r.sources(mgr.GetCache(), options.OnActive))
	})
	return nil
}

// Reconcile moves the pod of one Eviction, if it is the turn of a responder of ours. What was
// asked for in turns that are over is asked for no more.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	defer r.dispatcher.Yield(key)
	e, err := r.eviction(ctx, key)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	turn, controls := turnOf(e), r.acts()
	evicts := turn == core.DefaultEvictor && controls
	if !evicts {
		r.forget(key)
	}
	if err := r.release(ctx, key, e, controls); err != nil || turn == "" || turn == core.DefaultEvictor && !evicts {
		return reconcile.Result{}, err
	}
	seen, err := r.observe(ctx, key, turn, e)
	if err != nil || seen == nil {
		return reconcile.Result{}, err
	}
	return r.respond(ctx, key, seen)
}

// respond does what there is to do in our turn, and reports.
func (r *reconciler) respond(ctx context.Context, key types.NamespacedName, seen *core.TurnSnapshot) (reconcile.Result, error) {
	decision := core.DecideTurn(*seen)
	if err := r.ask(ctx, seen, decision); err != nil {
		return reconcile.Result{}, kube.WithoutStale(ctx, err)
	}
	again, err := r.act(ctx, key, &seen.EvictorSnapshot, decision.EvictorDecision)
	if err != nil {
		return reconcile.Result{}, kube.WithoutStale(ctx, err)
	}
	if decision.Evict {
		// What was refused just now may be worth a report.
		due := r.unreported(key, &seen.EvictorSnapshot)
		decision = core.DecideTurn(*seen)
		again = kube.Soonest(again, due)
	}
	if decision.Report != nil {
		if err := kube.WithoutStale(ctx, r.report(ctx, key, &seen.EvictorSnapshot, decision.EvictorDecision)); err != nil {
			return reconcile.Result{}, err
		}
		again = kube.Soonest(again, core.HeartbeatEvery)
	}
	return reconcile.Result{RequeueAfter: kube.Soonest(again, decision.RequeueAfter)}, nil
}

// forget drops everything that is remembered of an Eviction in which it is not the default
// evictor's turn.
func (r *reconciler) forget(key types.NamespacedName) {
	r.dispatcher.Forget(key)
	r.pods.Delete(key)
}

// turnOf is which responder of ours has its turn, and has not said that it is done with it;
// empty if none has.
func turnOf(e *lifecyclev1alpha1.Eviction) string {
	if e == nil {
		return ""
	}
	turn := core.OurTurn(&e.Status)
	own := core.ResponderOf(&e.Status, turn)
	if _, named := core.EvictionTarget(e); !named || own == nil || own.CompletionTime != nil {
		return ""
	}
	return turn
}
