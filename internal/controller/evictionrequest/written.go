package evictionrequest

import (
	"context"
	"fmt"
	"sync"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// written remembers what was last written about the pods of a stem, until the cache has
// it. A list that were to wait for our own writes would wait for those of all workers.
type written struct {
	mu  *sync.Mutex
	all map[types.NamespacedName][]client.Object
}

func newWritten() written {
	return written{mu: &sync.Mutex{}, all: map[types.NamespacedName][]client.Object{}}
}

// note has all objects of a decision remembered, whether their writes succeed or not.
func (w written) note(key types.NamespacedName, d core.Decision) {
	var all []client.Object
	add := func(object client.Object, name string) {
		object.SetNamespace(key.Namespace)
		object.SetName(name)
		all = append(all, object)
	}
	for _, e := range d.Creations {
		add(&lifecyclev1alpha1.Eviction{}, e.Name)
	}
	for _, e := range d.Metadata {
		add(&lifecyclev1alpha1.Eviction{}, e.Name)
	}
	for _, change := range d.Evictions {
		add(&lifecyclev1alpha1.Eviction{}, change.Eviction.Name)
	}
	for _, change := range d.Requests {
		add(&lifecyclev1alpha1.EvictionRequest{}, change.Request.Name)
	}
	if len(all) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[key] = all
}

// take returns what was written, and forgets it.
func (w written) take(key types.NamespacedName) []client.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer delete(w.all, key)
	return w.all[key]
}

// catchUp waits until the cache has what we have written about the pods of a stem.
func (r *Reconciler) catchUp(ctx context.Context, key types.NamespacedName) error {
	for _, object := range r.written.take(key) {
		// A get waits for the writes to this one object.
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("wait for what was written: %w", err)
		}
	}
	return nil
}
