package evictionrequest

import (
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// written returns all objects of a decision about the pods of a stem.
func written(key types.NamespacedName, d core.Decision) []client.Object {
	var all []client.Object
	add := func(object client.Object, name string) {
		object.SetNamespace(key.Namespace)
		object.SetName(name)
		all = append(all, object)
	}
	for _, e := range d.Creations {
		add(&lifecyclev1alpha1.Eviction{}, e.Name)
	}
	for _, e := range d.Metadata {
		add(&lifecyclev1alpha1.Eviction{}, e.Name)
	}
	for _, change := range d.Evictions {
		add(&lifecyclev1alpha1.Eviction{}, change.Eviction.Name)
	}
	for _, change := range d.Requests {
		add(&lifecyclev1alpha1.EvictionRequest{}, change.Request.Name)
	}
	return all
}
