// Package cluster keeps the status of Clusters and holds a Cluster that is being
// deleted until its Machines are gone.
//
// What happens is decided in core/lifecycle. It never deletes a Machine. Whether
// a cluster is reachable is what its connection says, which Machines have made.
package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

// workers is how many Clusters of one namespace are worked on at the same time.
const workers = 4

// connections says what is known of a cluster; it is a *workload.Registry.
type connections interface {
	State(cluster types.NamespacedName) workload.State
}

type reconciler struct {
	// client reads from the cache, live from the API server.
	client      client.Client
	live        client.Reader
	connections connections
}

// Add registers the controller with a manager whose client reads from a cache
// with kube.CacheOptions and kube.IndexFields, consistent with its own writes.
//
// Errors: a watch cannot be set up, or the controller was added before.
func Add(mgr manager.Manager, registry *workload.Registry) error {
	r := &reconciler{client: mgr.GetClient(), live: kube.Live(mgr.GetAPIReader()), connections: registry}
	return kube.AddController(mgr, "cluster", kube.ByNamespace(r, workers), r.sources(mgr.GetCache(), registry))
}

// Reconcile brings the finalizer and the status of one Cluster up to date. There
// is nothing to be recorded first, because nothing is undone later.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	snapshot, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	if snapshot.Cluster == nil {
		return reconcile.Result{}, nil
	}
	decision := lifecycle.DecideCluster(snapshot)
	held, err := r.act(ctx, snapshot.Cluster, decision)
	if err == nil && !decision.DropFinalizer {
		err = r.report(ctx, held, decision)
	}
	return reconcile.Result{}, kube.WithoutStale(ctx, err)
}
