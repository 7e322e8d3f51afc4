package eviction

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=list;watch

// Grace returns the grace period in seconds that overrides a local pod's own; nil if none does. It is
// short only if the node is unreachable and is deleted with its Machine, which would otherwise wait
// for a termination that does not happen.
func Grace(ctx context.Context, cache client.Reader, pod *corev1.Pod) *int64 {
	node, maintenance := &corev1.Node{}, &v1alpha1.NodeMaintenance{}
	now := []client.GetOption{client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}
	if err := cache.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node, now...); err != nil || !podclass.Unreachable(node) {
		return nil
	}
	of, namespace, name := bridge.NodeOf(node)
	key := client.ObjectKey{Name: bridge.MaintenanceName(of, namespace, name)}
	if err := cache.Get(ctx, key, maintenance, now...); err != nil || !bridge.Leaves(node.Name, maintenance) {
		return nil
	}
	return new(podclass.UnreachableGraceSeconds)
}
