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

// changes tell when an object of some kinds has changed.
type changes struct {
	happened chan struct{}
	stop     context.CancelFunc
	all      sync.WaitGroup
}

// watch begins to watch kinds: what changes from now on is told of, many changes as one. A
// kind that the API server does not know does not change.
//
// Errors: one of them cannot be watched.
func watch(ctx context.Context, c client.WithWatch, kinds ...kind) (*changes, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &changes{happened: make(chan struct{}, 1), stop: stop}
	for _, k := range kinds {
		stream, err := begin(ctx, c, k)
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
				stream = beginAgain(ctx, c, k)
				// Nobody has seen what happened in between.
				w.tell()
			}
		})
	}
	return w, nil
}

// begin watches a kind from now on.
func begin(ctx context.Context, c client.WithWatch, k kind) (apiwatch.Interface, error) {
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

// beginAgain is for a watch that the API server has ended, as it does from time to time, and
// whatever is between. One that is away for a moment is waited for; nil if the time is up.
func beginAgain(ctx context.Context, c client.WithWatch, k kind) apiwatch.Interface {
	for kube.Wait(ctx, betweenCalls) {
		if stream, err := begin(ctx, c, k); err == nil {
			return stream
		}
	}
	return nil
}

// follow tells of what a watch says, until it ends.
func (w *changes) follow(ctx context.Context, stream apiwatch.Interface) {
	defer context.AfterFunc(ctx, stream.Stop)()
	defer stream.Stop()
	for range stream.ResultChan() {
		w.tell()
	}
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
