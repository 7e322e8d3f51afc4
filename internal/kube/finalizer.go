package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer adds a finalizer under the resource version of the object, unless it is there, and
// returns the stored object.
func AddFinalizer[T client.Object](ctx context.Context, c client.Client, object T, finalizer string) (T, error) {
	return patchFinalizers(ctx, c, object, func(changed client.Object) bool {
		return controllerutil.AddFinalizer(changed, finalizer)
	})
}

// RemoveFinalizer removes finalizers under the resource version of the object. An object that is
// gone is no error.
func RemoveFinalizer[T client.Object](ctx context.Context, c client.Client, object T, finalizers ...string) (T, error) {
	removed, err := patchFinalizers(ctx, c, object, func(changed client.Object) bool {
		before := len(changed.GetFinalizers())
		for _, finalizer := range finalizers {
			controllerutil.RemoveFinalizer(changed, finalizer)
		}
		return len(changed.GetFinalizers()) < before
	})
	return removed, client.IgnoreNotFound(err)
}

func patchFinalizers[T client.Object](
	ctx context.Context, c client.Client, object T, change func(client.Object) bool,
) (T, error) {
	changed, ok := object.DeepCopyObject().(T)
	if !ok {
		return object, fmt.Errorf("the copy of a %T has another type", object)
	}
	if !change(changed) {
		return object, nil
	}
	if err := c.Patch(ctx, changed, Change(object)); err != nil {
		return object, err
	}
	return changed, nil
}
