// Package evictionrequest is the evictionrequest-controller of the API group
// lifecycle.k8s.io, where the API server serves that and nobody else is.
//
// What happens is decided in core/evictionrequest, for all pods of one name at a time.
// Here is only who acts, and when: Role knows whether that is us, and everything that
// writes asks it. Nothing is remembered but since when pods have been seen to be gone,
// so that a manager that is killed behind any write goes on where it was.
package evictionrequest

import (
	"context"
	"fmt"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// workers is how many pods are worked on at the same time.
	workers = 32
	// maxRequests is how many requests of one pod are answered before others have their
	// turn: a user may make any number of them.
	maxRequests = 50
)

// API is what has to be served.
func API() kube.ServedAPI {
	return kube.ServedAPI{
		GroupVersion: schema.GroupVersion{Group: lifecyclev1alpha1.GroupName, Version: "v1alpha1"},
		Resources:    []string{"evictionrequests", "evictions"},
		Kinds:        []client.Object{&lifecyclev1alpha1.EvictionRequest{}, &lifecyclev1alpha1.Eviction{}},
	}
}

// Options configures the controller.
type Options struct {
	// Served runs it while the API is served.
	Served *kube.Served
	// Role says whether it acts.
	Role *Role
	// Skew knows what time it is at the API server.
	Skew *kube.Skew
}

type reconciler struct {
	// client reads from the cache, live from the API server.
	client client.Client
	live   client.Reader
	// acts is asked before every write.
	acts func() bool
	// now is the API server's time.
	now     func() time.Time
	ended   ended
	written written
	// wakeAll has everything reconciled.
	wakeAll func(context.Context)
}

// Add has the controller run while the API is served.
func Add(mgr manager.Manager, options Options) {
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), acts: options.Role.Acts, now: options.Skew.Server,
		ended: newEnded(), written: newWritten(),
	}
	options.Served.Index(&lifecyclev1alpha1.EvictionRequest{}, stemField, stems)
	options.Served.Index(&lifecyclev1alpha1.Eviction{}, stemField, stems)
	options.Served.Part(func(ctx context.Context) error {
		return kube.RunController(ctx, mgr, "evictionrequest",
			controller.Options{Reconciler: r, MaxConcurrentReconciles: workers}, r.sources(mgr.GetCache(), options.Role))
	})
}

// Reconcile takes everything further that concerns the pods of one stem.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.acts() {
		r.written.take(request.NamespacedName)
		r.ended.note(request.NamespacedName, nil)
		return reconcile.Result{}, nil
	}
	seen, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	decision, err := r.decide(ctx, request.NamespacedName, &seen)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	more := len(decision.Requests) > maxRequests
	if more {
		decision.Requests = decision.Requests[:maxRequests]
	}
	r.written.note(request.NamespacedName, decision)
	if err := r.act(ctx, decision); err != nil {
		return reconcile.Result{}, err
	}
	if more {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	return reconcile.Result{RequeueAfter: decision.RequeueAfter}, nil
}

// decide decides by the cache, and again by the API server before anything is written about
// a pod that the cache does not have: it may be newer than that.
func (r *reconciler) decide(ctx context.Context, key client.ObjectKey, seen *core.Snapshot) (core.Decision, error) {
	decision := core.Decide(*seen)
	if decision.Empty() && len(decision.Ended) == 0 {
		r.ended.note(key, nil)
		return decision, nil
	}
	asked, err := r.lookAgain(ctx, key.Namespace, seen)
	if err != nil {
		return core.Decision{}, err
	}
	if asked {
		decision = core.Decide(*seen)
	}
	r.ended.note(key, decision.Ended)
	return decision, nil
}
