package kube

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Written remembers what was last written for a key, until the cache has it. A list that
// waits for our own writes waits for those of all workers, and for one that hangs; a get
// waits for the writes to its object only. The zero value remembers nothing. It is safe for
// concurrent use.
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

// CatchUp waits until the cache has what was written for a key, and forgets it.
//
// Errors: an object cannot be read.
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
