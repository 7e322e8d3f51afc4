package uninstall

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changes tell when an object of some kinds has changed.
type changes struct {
	happened chan struct{}
	stop     context.CancelFunc
	all      sync.WaitGroup
}

// watch begins to watch kinds: what changes from now on is told of, many changes as one.
// An API server ends a watch from time to time, which counts as a change.
//
// Errors: one of them cannot be watched.
func watch(ctx context.Context, c client.WithWatch, kinds ...kind) (*changes, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &changes{happened: make(chan struct{}, 1), stop: stop}
	for _, k := range kinds {
		list := k.list()
		if err := c.List(ctx, list, client.Limit(1)); err != nil {
			w.end()
			return nil, fmt.Errorf("list %s: %w", k.resource, err)
		}
		from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
		stream, err := c.Watch(ctx, k.list(), from)
		if err != nil {
			w.end()
			return nil, fmt.Errorf("watch %s: %w", k.resource, err)
		}
		w.all.Go(func() {
			defer stream.Stop()
			for range stream.ResultChan() {
				w.tell()
			}
			w.tell()
		})
		context.AfterFunc(ctx, stream.Stop)
	}
	return w, nil
}

func (w *changes) tell() {
	select {
	case w.happened <- struct{}{}:
	default:
	}
}

// end ends all watches.
func (w *changes) end() {
	w.stop()
	w.all.Wait()
}
