package bridge

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// instance reads the object that stands for the instance of a Machine, and follows all of its
// kind from the first time on. The right to do so is optional. Until they are followed, the
// next change of the object wakes nobody.
func (k *kinds) instance(ctx context.Context, m *core.Machine) (seen core.Instance, unwatched bool) {
	named := m.Infrastructure
	if named.Group != core.InfrastructureGroup {
		return core.Instance{Unread: "only kinds of the group " + core.InfrastructureGroup + " are read"}, false
	}
	mapping, err := k.writer.RESTMapper().RESTMapping(schema.GroupKind{Group: named.Group, Kind: named.Kind})
	if err != nil {
		return core.Instance{Unread: err.Error()}, false
	}
	kind, key := mapping.GroupVersionKind, types.NamespacedName{Namespace: m.Ref.Namespace, Name: named.Name}
	object := metadata(kind)
	// What cannot be followed is read each time.
	_ = k.begin(ctx, object, k.instanceHandler())
	synced := k.synced(kind)
	if synced && k.store.Get(ctx, key, object) == nil {
		return core.Instance{Deleting: object.DeletionTimestamp != nil}, false
	}
	// That there is none is only believed of the API server.
	err = k.live.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		return core.Instance{Gone: true}, false
	case err != nil:
		return core.Instance{Unread: err.Error()}, false
	}
	return core.Instance{Deleting: object.DeletionTimestamp != nil}, !synced
}

// metadata returns an object of which at most the metadata is read.
func metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// instanceHandler wakes the Machine of an instance that is gone or being deleted.
func (k *kinds) instanceHandler() toolscache.ResourceEventHandler {
	return kube.OnInform(func(old, now *metav1.PartialObjectMetadata) {
		if now != nil && now.DeletionTimestamp == nil {
			return
		}
		instance := cmp.Or(now, old)
		for _, owner := range instance.OwnerReferences {
			if owner.Kind == core.ClusterAPIMachine.Kind {
				k.wake(requestOf(core.ClusterAPI, instance.Namespace, owner.Name)...)
			}
		}
	})
}
