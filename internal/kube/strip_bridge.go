package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bridgedFields are what is read of the Machines of other controllers, and of what they
// are in, besides their metadata.
var bridgedFields = [][]string{
	{"spec", "clusterName"},
	{"spec", "providerID"},
	{"spec", "infrastructureRef"},
	{"spec", "paused"},
	{"spec", "deletion"},
	{"spec", "lifecycleHooks"},
	{"spec", "drain"},
	{"spec", "machines"},
	{"spec", "pods"},
	{"status", "nodeRef"},
	{"status", "phase"},
	{"status", "conditions"},
	{"status", "deletion"},
}

// StripBridged returns what is read of an object of Cluster API or OpenShift. Annotations
// and hooks are all there, so that a change of it changes nothing else.
func StripBridged(object any) (any, error) {
	if named, ok := object.(*metav1.PartialObjectMetadata); ok {
		// What stands for an instance: whose it is, and whether it is being deleted.
		named.ManagedFields, named.Annotations, named.Labels = nil, nil, nil
		return named, nil
	}
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	stripped := &unstructured.Unstructured{Object: map[string]any{}}
	stripped.SetGroupVersionKind(full.GroupVersionKind())
	if meta, ok := full.Object["metadata"].(map[string]any); ok {
		stripped.Object["metadata"] = meta
		stripped.SetManagedFields(nil)
	}
	for _, field := range bridgedFields {
		value, found, err := unstructured.NestedFieldNoCopy(full.Object, field...)
		if !found || err != nil {
			continue
		}
		if err := unstructured.SetNestedField(stripped.Object, value, field...); err != nil {
			return nil, err
		}
	}
	return stripped, nil
}
