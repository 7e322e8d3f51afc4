package kube_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

func TestStripBudgetKeepsWhenALockedOneWasWritten(t *testing.T) {
	t.Parallel()
	written := metav1.NewTime(time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC))
	fields := []metav1.ManagedFieldsEntry{
		{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "policy/v1", Time: &written,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
		},
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Time: &written, Subresource: "status"},
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		want        []metav1.ManagedFieldsEntry
	}{
		"without a lock": {annotations: map[string]string{"team": "shop"}},
		"with a lock": {
			annotations: map[string]string{v1alpha1.LockAnnotation: "mine!"},
			want: []metav1.ManagedFieldsEntry{
				{Operation: metav1.ManagedFieldsOperationUpdate, Time: &written},
				{Operation: metav1.ManagedFieldsOperationUpdate, Time: &written, Subresource: "status"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "shop", Generation: 2, Annotations: test.annotations, ManagedFields: fields,
				},
				Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
				Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 1},
			}
			want := full.DeepCopy()
			want.ManagedFields = test.want
			if diff := cmp.Diff(want, kube.StripBudget(full)); diff != "" {
				t.Errorf("cached budget (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(fields, full.ManagedFields); diff != "" {
				t.Errorf("the argument has changed (-want +got):\n%s", diff)
			}
		})
	}
}
