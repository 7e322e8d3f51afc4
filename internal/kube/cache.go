package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// CacheOptions keeps objects of any cluster stripped to what decisions read. What a decision reads
// must survive StripPod, StripNode and the like.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Transform: transform(StripPod)},
			&corev1.Node{}:                  {Transform: transform(StripNode)},
			&corev1.Namespace{}:             {Transform: transform(StripNamespace)},
			&corev1.PersistentVolumeClaim{}: {Transform: transform(StripClaim)},
			&corev1.PersistentVolume{}:      {Transform: transform(StripVolume)},
			&storagev1.VolumeAttachment{}:   {Transform: transform(StripAttachment)},
			&appsv1.DaemonSet{}:             {Transform: transform(StripDaemonSet)},
			&appsv1.Deployment{}:            {Transform: transform(StripDeployment)},
			&appsv1.ReplicaSet{}:            {Transform: transform(StripReplicaSet)},
			&policyv1.PodDisruptionBudget{}: {Transform: transform(StripBudget)},
		},
	}
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=drain-lock-mutex,verbs=list;watch,namespace=release

// ManagerCacheOptions is CacheOptions for the local cluster, with the drain lock mutex as the only
// Lease and OwnSlices as the only EndpointSlices.
func ManagerCacheOptions(namespace string) cache.Options {
	options := CacheOptions()
	options.ByObject[&coordinationv1.Lease{}] = cache.ByObject{
		Namespaces: map[string]cache.Config{namespace: {}},
		Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, v1alpha1.DrainLockMutex),
	}
	// As an entry by object it would have to be served.
	options.DefaultTransform = stripUnnamed
	options.ByObject[&discoveryv1.EndpointSlice{}] = cache.ByObject{
		Transform: transform(StripEndpointSlice), Label: labels.SelectorFromSet(OwnSlices),
	}
	return options
}

// stripUnnamed strips all other kinds. Kinds that namespace owners create lose the annotations that
// no decision reads.
func stripUnnamed(object any) (any, error) {
	switch typed := object.(type) {
	case *lifecyclev1alpha1.Eviction:
		typed.Annotations = stripAnnotations(typed.Annotations)
		return StripEviction(typed), nil
	case *lifecyclev1alpha1.EvictionRequest:
		typed.Annotations = stripAnnotations(typed.Annotations)
	case *v1alpha1.Evacuation:
		typed.Annotations = stripAnnotations(typed.Annotations)
	case *v1alpha1.MachineDrainRule:
		typed.Annotations = nil
	}
	return cache.TransformStripManagedFields()(object)
}

// WorkloadKinds are the only kinds that the deletion of Machines reads in the cluster of their
// Nodes.
func WorkloadKinds() []client.Object {
	return []client.Object{
		&corev1.Node{}, &corev1.Pod{}, &corev1.Namespace{}, &appsv1.DaemonSet{}, &policyv1.PodDisruptionBudget{},
		&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &storagev1.VolumeAttachment{},
	}
}

// transform leaves everything but a T alone, such as tombstones.
func transform[T any](strip func(T) T) func(any) (any, error) {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			return strip(typed), nil
		}
		return object, nil
	}
}
