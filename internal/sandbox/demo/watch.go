package demo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// watchAll merges the watches of everything that the story is about, beginning
// with what is there. A watch that ends early shows as an error event.
func watchAll(ctx context.Context, c client.WithWatch, node string) (<-chan watch.Event, error) {
	all := make(chan watch.Event)
	for _, w := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{
		{&corev1.NodeList{}, []client.ListOption{client.MatchingFields{"metadata.name": node}}},
		{&corev1.PodList{}, []client.ListOption{client.MatchingFields{"spec.nodeName": node}}},
		{&policyv1.PodDisruptionBudgetList{}, []client.ListOption{client.InNamespace(namespace)}},
		{&v1alpha1.NodeMaintenanceList{}, nil},
		{&v1alpha1.EvacuationList{}, nil},
	} {
		watcher, err := c.Watch(ctx, w.list, w.options...)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", w.list, err)
		}
		go forward(ctx, watcher, all)
	}
	return all, nil
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
