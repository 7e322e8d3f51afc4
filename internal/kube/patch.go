package kube

import (
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
