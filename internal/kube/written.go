package kube

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Written keeps the last writes for a key until the cache has them. Lists that wait for own writes
// wait for those of all workers, even hanging ones; a get only waits for writes to its object. It
// is safe for concurrent use, and its zero value is empty.
type Written[K comparable] struct {
	mu  sync.Mutex
	all map[K][]client.Object
}

// Note remembers the objects of a decision, whether their writes succeed or not.
func (w *Written[K]) Note(key K, objects []client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[K][]client.Object{}
	}
	if delete(w.all, key); len(objects) > 0 {
		w.all[key] = objects
	}
}

// CatchUp waits until the cache has the last writes for a key, and forgets them. It fails if an
// object cannot be read.
func (w *Written[K]) CatchUp(ctx context.Context, reader client.Reader, key K) error {
	w.mu.Lock()
	objects := w.all[key]
	delete(w.all, key)
	w.mu.Unlock()
	for _, object := range objects {
		if err := reader.Get(ctx, client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("wait for what was written: %w", err)
		}
	}
	return nil
}
