package nodeshutdown

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

func (r *reconciler) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(c, &v1alpha1.NodeAgent{}, kube.OnChange(ofAgent)),
		source.Kind(c, &corev1.Node{}, kube.OnChange(ofNode)),
		source.Kind(c, &v1alpha1.NodeMaintenance{}, kube.OnChange(ofMaintenance)),
	}
}

// ofAgent ignores reports about anything but shutdowns.
func ofAgent(_ context.Context, old, now *v1alpha1.NodeAgent) []types.NamespacedName {
	switch {
	case old == nil:
		return []types.NamespacedName{{Name: now.Name}}
	case now == nil:
		return []types.NamespacedName{{Name: old.Name}}
	case old.Status.BootID == now.Status.BootID && equality.Semantic.DeepEqual(old.Status.Shutdown, now.Status.Shutdown):
		return nil
	}
	return []types.NamespacedName{{Name: now.Name}}
}

// ofNode names a node with an agent whose boot or readiness has changed, or that is gone.
func ofNode(_ context.Context, old, now *corev1.Node) []types.NamespacedName {
	switch {
	case now == nil:
		return []types.NamespacedName{{Name: old.Name}}
	case old == nil:
		return nil // Its agent has an event of its own.
	case old.Status.NodeInfo.BootID == now.Status.NodeInfo.BootID && podclass.NodeReady(old) == podclass.NodeReady(now):
		return nil
	}
	return []types.NamespacedName{{Name: now.Name}}
}

// ofMaintenance names the node of a deleted maintenance that was created for its shutdown.
func ofMaintenance(_ context.Context, old, now *v1alpha1.NodeMaintenance) []types.NamespacedName {
	if now != nil {
		return nil
	}
	if node := maintenance.OfShutdown(old); node != "" {
		return []types.NamespacedName{{Name: node}}
	}
	return nil
}
