package kube

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change returns the patch from an object to its changed version. It is refused if the stored
// object has changed. Annotations that the cache drops stay.
func Change(object client.Object) client.Patch { return change{object} }

type change struct{ before client.Object }

func (c change) Type() types.PatchType { return types.MergePatchType }

// Data gives both objects an annotation. Otherwise removing the last known one would remove all,
// including those that the cache dropped.
func (c change) Data(after client.Object) ([]byte, error) {
	return client.MergeFromWithOptions(kept(c.before), client.MergeFromWithOptimisticLock{}).Data(kept(after))
}

func kept(object client.Object) client.Object {
	marked := object.DeepCopyObject().(client.Object)
	annotations := map[string]string{"": ""}
	maps.Copy(annotations, object.GetAnnotations())
	marked.SetAnnotations(annotations)
	return marked
}

// Annotate sets an annotation under the resource version of the object, or removes it if the value
// is empty. It returns the stored object.
func Annotate[T client.Object](ctx context.Context, c client.Client, object T, key, value string) (T, error) {
	changed := object.DeepCopyObject().(T)
	annotate(changed, key, value)
	if err := c.Patch(ctx, changed, Change(object)); err != nil {
		return object, err
	}
	return changed, nil
}

func annotate(object client.Object, key, value string) {
	annotations := object.GetAnnotations()
	if value == "" {
		delete(annotations, key)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}
