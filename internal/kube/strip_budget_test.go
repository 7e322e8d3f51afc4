package kube_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
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
		annotations, kept map[string]string
		want              []metav1.ManagedFieldsEntry
	}{
		"without a lock": {annotations: map[string]string{"team": "shop"}},
		"with a lock": {
			annotations: map[string]string{v1alpha1.LockAnnotation: "mine!", "team": "shop"},
			kept:        map[string]string{v1alpha1.LockAnnotation: "mine!"},
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
					Namespace: "shop", Name: "shop", UID: "uid", Generation: 2, Annotations: test.annotations, ManagedFields: fields,
				},
				Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
				Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 1},
			}
			want := full.DeepCopy()
			want.ManagedFields, want.Annotations = test.want, test.kept
			if diff := cmp.Diff(want, kube.StripBudget(full)); diff != "" {
				t.Errorf("cached budget (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(fields, full.ManagedFields); diff != "" {
				t.Errorf("the argument has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// One who may edit a namespace makes a budget as large as its metadata may be. A lock that is
// too long is one that nobody can read, cut or not.
func TestABlownUpBudgetTakesLittleOfTheCache(t *testing.T) {
	t.Parallel()
	now, large := time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC), strings.Repeat("u", 200<<10)
	lock := budget.Lock{Holder: "dba@example.com", Reason: large, AcquiredAt: metav1.NewTime(now), ExpiresAt: metav1.NewTime(now.Add(time.Hour))}
	full := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "shop", CreationTimestamp: metav1.NewTime(now), Labels: map[string]string{large: ""}, Finalizers: []string{large},
		Annotations: map[string]string{"blown": large, "ebbtide.dev/blown": large, v1alpha1.LockAnnotation: lock.Write()},
	}}
	kept := kube.StripBudget(full)
	if size := kept.Size(); size > 40<<10 {
		t.Errorf("%d bytes are kept", size)
	}
	for name, one := range map[string]*policyv1.PodDisruptionBudget{"the budget": full, "its copy in the cache": kept} {
		hold, locked := budget.LockOf(one, now.Add(time.Minute), 0)
		if want := "annotation ebbtide.dev/lock has more than 32768 bytes"; !locked || hold.Unreadable == nil || hold.Unreadable.Error() != want {
			t.Errorf("%s is locked %v, %v; want it to be, and %q", name, locked, hold.Unreadable, want)
		}
	}
}

func TestAnnotationsOfNamespacesAreNotCached(t *testing.T) {
	t.Parallel()
	strip := kube.ManagerCacheOptions("ebbtide").DefaultTransform
	for _, object := range []client.Object{
		&v1alpha1.Evacuation{}, &v1alpha1.MachineDrainRule{}, &lifecyclev1alpha1.Eviction{}, &lifecyclev1alpha1.EvictionRequest{},
	} {
		object.SetAnnotations(map[string]string{"blown": strings.Repeat("u", 200<<10)})
		kept, err := strip(object)
		if err != nil || len(kept.(client.Object).GetAnnotations()) > 0 {
			t.Errorf("of a %T annotations are kept, error %v", object, err)
		}
	}
}
