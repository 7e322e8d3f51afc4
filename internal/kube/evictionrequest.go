package kube

import (
	"strings"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// RequestNode extracts RequestNodeField: those that were withdrawn, and those of others, are
// in no index.
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
	e, ok := object.(*lifecyclev1alpha1.Eviction)
	if !ok || e.Spec.Target.Pod == nil {
		return nil
	}
	return []string{string(e.Spec.Target.Pod.UID)}
}
