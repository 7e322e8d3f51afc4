// Package evictor translates Evictions of lifecycle.k8s.io into Evacuations, for Ebbtide's two
// responders: imperative-eviction.k8s.io/evictor, while Ebbtide is the controller there, and
// ebbtide.dev/deployment-surge. While a responder is active it requests the pod's Evacuation,
// copies its progress to the Eviction, and withdraws afterwards. core/evictionrequest decides.
package evictor

import (
	"context"
	"fmt"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Options configures the evictor.
type Options struct {
	// Workers bounds the pods of a namespace that are worked on at the same time. Defaults to 32.
	Workers int
	// Surge selects the Deployments that surge.
	Surge surge.Mode
	// Served runs it while the API is served.
	Served *kube.Served
	// Acts reports whether Ebbtide is the controller, OnActive calls wake when it becomes that.
	Acts     func() bool
	OnActive func(ctx context.Context, wake func(context.Context))
	// Skew is the API server's clock.
	Skew *kube.Skew
}

const defaultWorkers = 32

type reconciler struct {
	// client reads from the cache, live from the API server.
	client client.Client
	live   client.Reader
	// reports writes the status of responders, with a share of requests of its own.
	reports client.Client
	acts    func() bool
	now     func() time.Time
	// clock is the time of Evacuations.
	clock kube.Now
	began kube.Began
	surge surge.Mode
	emit  func(...event.Event)
}

// Add runs the evictor while the API is served.
//
// Errors: the config of the manager is invalid.
func Add(mgr manager.Manager, options Options) error {
	reports, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client that reports: %w", err)
	}
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), reports: reports,
		acts: options.Acts, now: options.Skew.Server, clock: options.Skew.Now, surge: options.Surge,
		emit: kube.Emitter(mgr.GetEventRecorder("ebbtide")),
	}
	if options.Workers <= 0 {
		options.Workers = defaultWorkers
	}
	options.Served.Index(&lifecyclev1alpha1.Eviction{}, kube.EvictionPodField, kube.EvictionPod)
	options.Served.Part(func(ctx context.Context) error {
		return kube.RunController(ctx, mgr, "evictor", kube.ByNamespace(r, options.Workers), r.sources(mgr.GetCache(), options.OnActive))
	})
	return nil
}

// Reconcile requests the Evacuation of the pod of one Eviction while a responder of ours is active, and
// withdraws it afterwards.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	e, err := r.eviction(ctx, key)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	responder, controls := responderOf(e), r.acts()
	if err := r.release(ctx, key, e, controls); err != nil || responder == "" || responder == core.DefaultEvictor && !controls {
		return reconcile.Result{}, err
	}
	seen, err := r.observe(ctx, key, responder, e)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	decision := core.DecideResponse(*seen)
	if err := r.request(ctx, seen, decision); err != nil {
		return reconcile.Result{}, kube.WithoutStale(ctx, err)
	}
	if decision.Report != nil {
		if err := r.report(ctx, key, seen, decision); err != nil {
			return reconcile.Result{}, kube.WithoutStale(ctx, err)
		}
	}
	return reconcile.Result{RequeueAfter: decision.RequeueAfter}, nil
}

// responderOf returns the active responder of ours that has not completed; empty if there is none.
func responderOf(e *lifecyclev1alpha1.Eviction) string {
	if e == nil {
		return ""
	}
	responder := core.OwnResponder(&e.Status)
	own := core.ResponderOf(&e.Status, responder)
	if _, named := core.EvictionTarget(e); !named || own == nil || own.CompletionTime != nil {
		return ""
	}
	return responder
}
