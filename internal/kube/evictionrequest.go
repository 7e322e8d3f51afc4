package kube

import (
	"context"
	"fmt"
	"strings"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// RequestNode extracts RequestNodeField, without requests that were withdrawn or belong to others.
func RequestNode(object client.Object) []string {
	request, ok := object.(*lifecyclev1alpha1.EvictionRequest)
	if !ok || request.Spec.Requester != v1alpha1.NodeMaintenanceRequester || request.Spec.Target.Pod == nil ||
		request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction || request.DeletionTimestamp != nil {
		return nil
	}
	node := request.Annotations[v1alpha1.NodeAnnotation]
	if node == "" || !strings.HasSuffix(request.Name, string(request.Spec.Target.Pod.UID)) {
		return nil
	}
	return []string{node}
}

// EvictionPod extracts EvictionPodField.
func EvictionPod(object client.Object) []string {
	return by(object, func(e *lifecyclev1alpha1.Eviction) string {
		if e.Spec.Target.Pod == nil {
			return ""
		}
		return string(e.Spec.Target.Pod.UID)
	})
}

// Requested returns the EvictionRequest of a name for the pod with this UID, or nil, and the
// Evictions of the pod, from the cache.
func Requested(
	ctx context.Context, reader client.Reader, key client.ObjectKey, pod types.UID,
) (*lifecyclev1alpha1.EvictionRequest, []*lifecyclev1alpha1.Eviction, error) {
	request := &lifecyclev1alpha1.EvictionRequest{}
	err := reader.Get(ctx, key, request, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get EvictionRequest %s: %w", key, err)
	}
	var evictions lifecyclev1alpha1.EvictionList
	if err := reader.List(ctx, &evictions, client.MatchingFields{EvictionPodField: string(pod)}, client.InNamespace(key.Namespace),
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return nil, nil, fmt.Errorf("list the Evictions of the pod of EvictionRequest %s: %w", key, err)
	}
	return request, Pointers(evictions.Items), nil
}
