package kube

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// externalFields are the fields of the Cluster API contract for infrastructure and bootstrap
// configs.
var externalFields = [][]string{
	{"spec", "providerID"},
	{"status", "initialization"},
	{"status", "ready"},
	{"status", "dataSecretName"},
	{"status", "failureReason"},
	{"status", "failureMessage"},
}

// StripExternal returns the parts of an object named by a Machine or its Cluster that decisions
// read.
func StripExternal(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	stripped := &unstructured.Unstructured{Object: map[string]any{}}
	stripped.SetGroupVersionKind(full.GroupVersionKind())
	stripped.SetNamespace(full.GetNamespace())
	stripped.SetName(full.GetName())
	stripped.SetUID(full.GetUID())
	stripped.SetResourceVersion(full.GetResourceVersion())
	stripped.SetCreationTimestamp(full.GetCreationTimestamp())
	stripped.SetDeletionTimestamp(full.GetDeletionTimestamp())
	stripped.SetOwnerReferences(full.GetOwnerReferences())
	if err := copyFields(full, stripped, externalFields); err != nil {
		return nil, err
	}
	return stripped, nil
}
