package evictionrequest

import (
	"slices"
	"sync"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// askedFor are the names of the requests that there have been.
type askedFor struct {
	mu  sync.Mutex
	all []string
}

func (w *world) followAsked() *askedFor {
	w.t.Helper()
	a, list := &askedFor{}, &lifecyclev1alpha1.EvictionRequestList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	w.cluster.Follow(w.t, list, func(kind watch.EventType, object client.Object) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if kind == watch.Added {
			a.all = append(a.all, object.GetName())
		}
	}, client.InNamespace(w.ns))
	return a
}

func (a *askedFor) names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

func (a *askedFor) count() int { return len(a.names()) }
