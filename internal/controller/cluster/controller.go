// Package cluster maintains the status of Clusters, and keeps a deleted Cluster until its Machines
// are gone. core/lifecycle decides. It never deletes a Machine. Whether a cluster is reachable is
// reported by the connection that its Machines use.
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

const workers = 4

type connections interface {
	State(cluster types.NamespacedName) workload.State
}

type reconciler struct {
	client      client.Client
	live        client.Reader
	connections connections
}

// Add registers the controller with a manager whose client reads from a cache with
// kube.CacheOptions and kube.IndexFields, consistent with its own writes. It fails if a watch
// cannot be set up, or if the controller was added before.
func Add(mgr manager.Manager, registry *workload.Registry) error {
	r := &reconciler{client: mgr.GetClient(), live: kube.Live(mgr.GetAPIReader()), connections: registry}
	return kube.AddController(mgr, "cluster", kube.ByNamespace(r, workers), r.sources(mgr.GetCache(), registry))
}

// Reconcile updates the finalizer and the status of one Cluster. Nothing has to be recorded first,
// because nothing is undone later.
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
