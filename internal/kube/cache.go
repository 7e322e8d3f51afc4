package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions is what the manager keeps in memory: pods, nodes and workloads
// stripped to what a decision reads, and nothing with its managed fields. What a
// decision reads must survive StripPod, StripNode and their like.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:        {Transform: transform(StripPod)},
			&corev1.Node{}:       {Transform: transform(StripNode)},
			&appsv1.Deployment{}: {Transform: transform(StripDeployment)},
			&appsv1.ReplicaSet{}: {Transform: transform(StripReplicaSet)},
		},
	}
}

// transform leaves everything but a T alone, such as the tombstone of a
// deletion that the watch has missed.
func transform[T any](strip func(T) T) func(any) (any, error) {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			return strip(typed), nil
		}
		return object, nil
	}
}
