package kube

import (
	"bytes"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StripEviction keeps the managed fields of an Eviction that tell its creator and who activates
// responders.
func StripEviction(e *lifecyclev1alpha1.Eviction) *lifecyclev1alpha1.Eviction {
	var kept []metav1.ManagedFieldsEntry
	for i := range e.ManagedFields {
		entry := &e.ManagedFields[i]
		if entry.FieldsV1 == nil {
			continue
		}
		fields := entry.FieldsV1.GetRawBytes()
		switch {
		case entry.Subresource == "" && bytes.Contains(fields, []byte(`"f:spec"`)):
			kept = append(kept, ofManager(entry, `{"f:spec":{}}`))
		case entry.Subresource == "status" && bytes.Contains(fields, []byte(`"f:targetResponders"`)):
			kept = append(kept, ofManager(entry, `{"f:status":{"f:targetResponders":{}}}`))
		}
	}
	e.ManagedFields = kept
	return e
}

func ofManager(entry *metav1.ManagedFieldsEntry, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: entry.Manager, Operation: entry.Operation, Time: entry.Time, Subresource: entry.Subresource,
		FieldsType: entry.FieldsType, FieldsV1: metav1.NewFieldsV1(fields),
	}
}
