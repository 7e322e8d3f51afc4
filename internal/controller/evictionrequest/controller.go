// Package evictionrequest is the evictionrequest-controller of lifecycle.k8s.io where the API
// server serves that group and no other controller acts. core/evictionrequest decides, for all
// pods of one name at a time. Role knows whether Ebbtide is the controller, and every write asks
// it. A manager that is killed after any write continues where it was.
package evictionrequest

import (
	"context"
	"fmt"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// workers bounds the pods of a namespace that are worked on at the same time.
	workers = 32
	// maxRequests bounds the requests of one pod that are answered before those of others: a user may
	// make any number of them.
	maxRequests = 50
)

// API returns what has to be served.
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

// Parts of a Reconciler that its caller provides.
type Parts struct {
	// Client reads from the cache, in which Stems are indexed as StemField, Live from the
	// API server.
	Client client.Client
	Live   client.Reader
	// Acts is asked before every write.
	Acts func() bool
	// Now is the API server's time, Steady that of a clock that nobody sets, and Since since
	// when we act, by that clock.
	Now, Steady, Since func() time.Time
}

// Reconciler takes what concerns the pods of one stem further. Make one with New.
type Reconciler struct {
	client client.Client
	live   client.Reader
	acts   func() bool
	now    func() time.Time
	acting func() time.Duration

	ended   ended
	written kube.Written[types.NamespacedName]
	// wakeAll has everything reconciled.
	wakeAll func(context.Context)
}

// New returns a Reconciler that remembers nothing.
func New(parts Parts) *Reconciler {
	return &Reconciler{
		client: parts.Client, live: parts.Live, acts: parts.Acts, now: parts.Now, ended: newEnded(parts.Steady),
		acting: func() time.Duration { return parts.Steady().Sub(parts.Since()) },
	}
}

// Add has the controller run while the API is served.
func Add(mgr manager.Manager, options Options) {
	r := New(Parts{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Acts: options.Role.Acts, Now: options.Skew.Server, Steady: time.Now, Since: options.Role.Since,
	})
	options.Served.Index(&lifecyclev1alpha1.EvictionRequest{}, StemField, Stems)
	options.Served.Index(&lifecyclev1alpha1.Eviction{}, StemField, Stems)
	options.Served.Part(func(ctx context.Context) error {
		return kube.RunController(ctx, mgr, "evictionrequest", kube.ByNamespace(r, workers), r.sources(mgr.GetCache(), options.Role))
	})
}

// Reconcile takes everything further that concerns the pods of one stem.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.acts() {
		r.written.Note(request.NamespacedName, nil)
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
	r.written.Note(request.NamespacedName, written(request.NamespacedName, decision))
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
func (r *Reconciler) decide(ctx context.Context, key client.ObjectKey, seen *core.Snapshot) (core.Decision, error) {
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
