package uninstall

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
)

// changes signals changes of objects of some kinds.
type changes struct {
	happened chan struct{}
	stop     context.CancelFunc
	all      sync.WaitGroup
}

// watch watches kinds from now on, and merges their changes. A kind that is not served does not change.
func watch(ctx context.Context, c client.WithWatch, kinds ...kind) (*changes, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &changes{happened: make(chan struct{}, 1), stop: stop}
	for _, k := range kinds {
		stream, err := start(ctx, c, k)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			w.end()
			return nil, err
		}
		w.all.Go(func() {
			for stream != nil {
				w.follow(ctx, stream)
				stream = restart(ctx, c, k)
				// Changes in between were missed.
				w.signal()
			}
		})
	}
	return w, nil
}

// start watches a kind from now on.
func start(ctx context.Context, c client.WithWatch, k kind) (apiwatch.Interface, error) {
	list := k.list()
	if err := c.List(ctx, list, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list %s: %w", k.resource, err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	stream, err := c.Watch(ctx, k.list(), from)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", k.resource, err)
	}
	return stream, nil
}

// restart replaces a watch that has ended, and waits for the API server; nil if the context ends.
func restart(ctx context.Context, c client.WithWatch, k kind) apiwatch.Interface {
	for kube.Wait(ctx, betweenCalls) {
		if stream, err := start(ctx, c, k); err == nil {
			return stream
		}
	}
	return nil
}

// follow signals the events of a watch until it ends.
func (w *changes) follow(ctx context.Context, stream apiwatch.Interface) {
	defer context.AfterFunc(ctx, stream.Stop)()
	defer stream.Stop()
	for range stream.ResultChan() {
		w.signal()
	}
}

func (w *changes) signal() {
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
