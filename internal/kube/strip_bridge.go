package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bridgedFields are the fields read of Machines of other controllers and their owners, besides
// metadata.
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

// StripBridged returns the parts of an object of Cluster API or OpenShift that decisions read.
// Annotations and hooks are complete, so that a patch changes nothing else.
func StripBridged(object any) (any, error) {
	if named, ok := object.(*metav1.PartialObjectMetadata); ok {
		// Of an instance only its owner and deletion matter.
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
	if err := copyFields(full, stripped, bridgedFields); err != nil {
		return nil, err
	}
	return stripped, nil
}

// copyFields copies the fields that exist.
func copyFields(from, to *unstructured.Unstructured, fields [][]string) error {
	for _, field := range fields {
		value, found, err := unstructured.NestedFieldNoCopy(from.Object, field...)
		if !found || err != nil {
			continue
		}
		if err := unstructured.SetNestedField(to.Object, value, field...); err != nil {
			return err
		}
	}
	return nil
}
