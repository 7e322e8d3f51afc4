package kube

import (
	"context"
	"errors"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Pointers returns pointers to the items of a list.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// Cached lists objects of a cache, which must not be changed. The cache only fails when the manager
// stops, so an error is logged.
func Cached[P client.Object](ctx context.Context, cache client.Reader, list client.ObjectList, options ...client.ListOption) (all []P) {
	err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)...)
	err = errors.Join(err, apimeta.EachListItem(list, func(object runtime.Object) error {
		if one, ok := object.(P); ok {
			all = append(all, one)
		}
		return nil
	}))
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to list objects", "kind", fmt.Sprintf("%T", list))
	}
	return all
}
