package demo

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// source is some of the objects of a kind.
type source struct {
	list  client.ObjectList
	which client.ListOption
}

func named(name string) client.ListOption  { return client.MatchingFields{"metadata.name": name} }
func onNode(name string) client.ListOption { return client.MatchingFields{"spec.nodeName": name} }
func in(name string) client.ListOption     { return client.InNamespace(name) }

// all are the objects of every namespace.
func all() client.ListOption { return client.InNamespace("") }

// watchAll merges the watches of everything that a story is about, beginning
// with what is there. A watch that ends early shows as an error event.
func watchAll(ctx context.Context, c client.WithWatch, sources []source) (<-chan watch.Event, error) {
	merged := make(chan watch.Event)
	for _, from := range sources {
		watcher, err := c.Watch(ctx, from.list, from.which)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", from.list, err)
		}
		go forward(ctx, watcher, merged)
	}
	return merged, nil
}

func forward(ctx context.Context, from watch.Interface, to chan<- watch.Event) {
	defer from.Stop()
	for {
		event, ok := <-from.ResultChan()
		if !ok {
			event = watch.Event{Type: watch.Error}
		}
		select {
		case to <- event:
		case <-ctx.Done():
			return
		}
		if !ok {
			return
		}
	}
}
