package evictor

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// AddOff withdraws what an earlier manager has requested for EvictionRequests, in one that does not
// answer them. It reads no Evictions.
//
// Errors: Evacuations cannot be watched.
func AddOff(mgr manager.Manager) error {
	r := &reconciler{client: mgr.GetClient(), emit: kube.Emitter(mgr.GetEventRecorder("ebbtide"))}
	requested := kube.OnEvent(func(_ context.Context, q eviction.Requests, _, e *v1alpha1.Evacuation) {
		if e != nil {
			causeOf(e, q)
		}
	})
	return kube.AddController(mgr, "evictor-off", kube.ByNamespace(reconcile.Func(r.off), defaultWorkers),
		[]source.Source{source.Kind(mgr.GetCache(), &v1alpha1.Evacuation{}, requested)})
}

// off withdraws the requests of an Eviction as if it did not exist.
func (r *reconciler) off(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.release(ctx, request.NamespacedName, nil, false)
}

// causeOf enqueues the Eviction for which an Evacuation was requested.
func causeOf(e *v1alpha1.Evacuation, q eviction.Requests) {
	for _, name := range kube.EvacuationTurn(e) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: e.Namespace, Name: name}})
	}
}
