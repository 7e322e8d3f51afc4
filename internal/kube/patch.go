package kube

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change returns the patch from an object to what it is changed to. It is refused
// if the object has changed since it was read. Annotations that the cache leaves
// out stay as they are.
func Change(object client.Object) client.Patch { return change{object} }

type change struct{ before client.Object }

func (c change) Type() types.PatchType { return types.MergePatchType }

// Data gives both objects an annotation: between one that has some and one that
// has none, the difference would be to remove all, also those that we never saw.
func (c change) Data(after client.Object) ([]byte, error) {
	return client.MergeFromWithOptions(kept(c.before), client.MergeFromWithOptimisticLock{}).Data(kept(after))
}

// kept is the object with an annotation that is the same before and after.
func kept(object client.Object) client.Object {
	marked := object.DeepCopyObject().(client.Object)
	annotations := map[string]string{"": ""}
	maps.Copy(annotations, object.GetAnnotations())
	marked.SetAnnotations(annotations)
	return marked
}
