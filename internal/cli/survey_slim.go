package cli

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
)

// whole is kube.Whole.
func whole[P client.Object](object P) P { return kube.Whole(object) }

func slimNamespace(from *corev1.Namespace) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: from.Name, Labels: from.Labels}}
}

// slimReplicaSet keeps the owner: a Deployment has many old ReplicaSets.
func slimReplicaSet(from *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name, UID: from.UID, OwnerReferences: from.OwnerReferences},
		Spec:       appsv1.ReplicaSetSpec{Replicas: from.Spec.Replicas},
	}
}
