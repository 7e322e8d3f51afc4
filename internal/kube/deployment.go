package kube

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets,verbs=list;watch

// DeploymentOf returns the Deployment that controls a pod through its ReplicaSet, or nil. It
// belongs to the cache and must not be changed.
func DeploymentOf(ctx context.Context, c client.Reader, pod *corev1.Pod) (*appsv1.Deployment, error) {
	set := &appsv1.ReplicaSet{}
	if found, err := controllerOf(ctx, c, pod, "ReplicaSet", set); !found {
		return nil, err
	}
	deployment := &appsv1.Deployment{}
	if found, err := controllerOf(ctx, c, set, "Deployment", deployment); !found {
		return nil, err
	}
	return deployment, nil
}

// controllerOf reads the controller of an object if it is of the kind of apps/v1 and has the right
// UID.
func controllerOf(ctx context.Context, c client.Reader, object client.Object, kind string, owner client.Object) (bool, error) {
	ref := metav1.GetControllerOfNoCopy(object)
	if ref == nil || ref.Kind != kind || ref.APIVersion != appsv1.SchemeGroupVersion.String() {
		return false, nil
	}
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: ref.Name}
	if err := c.Get(ctx, key, owner, client.UnsafeDisableDeepCopy); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("get %s %s: %w", kind, ref.Name, err)
	}
	return owner.GetUID() == ref.UID, nil
}
