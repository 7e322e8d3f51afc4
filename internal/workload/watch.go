package workload

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/eviction"
)

// watch is what somebody wants to know of a kind in every cluster.
type watch struct {
	kind   client.Object
	handle func(cluster types.NamespacedName, old, now client.Object)
}

// follow has the informers of a cluster call all watches, and its evictions
// hear of budgets. The returned function undoes that.
func follow(ctx context.Context, c cache.Cache, cluster types.NamespacedName, watches []watch) (undo func(), err error) {
	var undone []func()
	undo = func() {
		for _, remove := range undone {
			remove()
		}
	}
	for _, w := range byKind(watches) {
		informer, err := c.GetInformer(ctx, w.kind, cache.BlockUntilSynced(false))
		if err != nil {
			undo()
			return nil, fmt.Errorf("watch %T: %w", w.kind, err)
		}
		registration, err := informer.AddEventHandler(handler(cluster, w))
		if err != nil {
			undo()
			return nil, fmt.Errorf("watch %T: %w", w.kind, err)
		}
		undone = append(undone, func() { _ = informer.RemoveEventHandler(registration) })
	}
	return undo, nil
}

func handler(cluster types.NamespacedName, w watch) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { w.handle(cluster, nil, object(now)) },
		UpdateFunc: func(old, now any) { w.handle(cluster, object(old), object(now)) },
		DeleteFunc: func(old any) { w.handle(cluster, object(old), nil) },
	}
}

// object is what an informer tells of, also of a deletion that it has missed.
func object(told any) client.Object {
	if missed, ok := told.(toolscache.DeletedFinalStateUnknown); ok {
		told = missed.Obj
	}
	o, _ := told.(client.Object)
	return o
}

// budgets tells the evictions of a cluster how its budgets change.
func budgets(queue *eviction.Queue) watch {
	return watch{&policyv1.PodDisruptionBudget{}, func(_ types.NamespacedName, old, now client.Object) {
		before, _ := old.(*policyv1.PodDisruptionBudget)
		after, _ := now.(*policyv1.PodDisruptionBudget)
		queue.BudgetChanged(before, after)
	}}
}

// byKind puts the watches of one kind together: each that an informer has costs it
// two goroutines.
func byKind(watches []watch) []watch {
	var all []watch
	for _, w := range watches {
		at := slices.IndexFunc(all, func(other watch) bool { return sameType(w.kind, other.kind) })
		if at < 0 {
			all = append(all, w)
			continue
		}
		first := all[at].handle
		all[at].handle = func(cluster types.NamespacedName, old, now client.Object) {
			first(cluster, old, now)
			w.handle(cluster, old, now)
		}
	}
	return all
}

func sameType(a, b client.Object) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
