package kube_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// cordoned stores a node with annotations of ours and of others, and returns what
// the cache keeps of it.
func cordoned(t *testing.T) (client.Client, *corev1.Node) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", Annotations: map[string]string{
			v1alpha1.CordonAnnotation: "{}", v1alpha1.DrainTargetsAnnotation: "[]", theirs: "stays",
		}},
		Spec: corev1.NodeSpec{Unschedulable: true},
	}
	c := fake.NewClientBuilder().WithObjects(node).Build()
	var read corev1.Node
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), &read); err != nil {
		t.Fatalf("get the node: %v", err)
	}
	return c, kube.StripNode(&read)
}

// When the last annotation that the cache knows goes, those of others stay.
func TestACordonLeavesTheAnnotationsOfOthers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		hold kube.Hold
		want map[string]string
	}{
		"all of ours go": {hold: kube.Hold{}, want: map[string]string{theirs: "stays"}},
		"one of ours goes": {
			hold: kube.Hold{Ledger: "{}"},
			want: map[string]string{theirs: "stays", v1alpha1.CordonAnnotation: "{}"},
		},
		"none of ours goes": {
			hold: kube.Hold{Ledger: "{1}", DrainTargets: "[1]", Suppress: true},
			want: map[string]string{theirs: "stays", v1alpha1.CordonAnnotation: "{1}", v1alpha1.DrainTargetsAnnotation: "[1]"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, node := cordoned(t)

			if err := kube.Cordon(t.Context(), c, node, test.hold); err != nil {
				t.Fatalf("cordon: %v", err)
			}

			var now corev1.Node
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), &now); err != nil {
				t.Fatalf("get the node: %v", err)
			}
			same(t, "annotations", test.want, now.Annotations)
			same(t, "unschedulable", test.hold.Unschedulable, now.Spec.Unschedulable)
		})
	}
}

func TestAChangeDecidedOnOldStateIsRefused(t *testing.T) {
	t.Parallel()
	c, node := cordoned(t)
	if err := kube.Cordon(t.Context(), c, node, kube.Hold{}); err != nil {
		t.Fatalf("cordon: %v", err)
	}

	if err := kube.Cordon(t.Context(), c, node, kube.Hold{Ledger: "{1}"}); !apierrors.IsConflict(err) {
		t.Errorf("the second write ended with %v, want a conflict", err)
	}
}

// What the cache keeps of managed fields, or leaves out of annotations, is no part of a
// change, whether a lock comes or goes.
func TestAChangeOfALockIsNothingElse(t *testing.T) {
	t.Parallel()
	written := metav1.NewTime(time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		before, after map[string]string
		want          string
	}{
		"it comes": {
			map[string]string{"team": "shop"},
			map[string]string{v1alpha1.LockAnnotation: "mine"},
			`{"metadata":{"annotations":{"ebbtide.dev/lock":"mine"},"resourceVersion":"12"}}`,
		},
		"it comes as the first annotation": {
			nil,
			map[string]string{v1alpha1.LockAnnotation: "mine"},
			`{"metadata":{"annotations":{"ebbtide.dev/lock":"mine"},"resourceVersion":"12"}}`,
		},
		"it is another one": {
			map[string]string{v1alpha1.LockAnnotation: "mine"},
			map[string]string{v1alpha1.LockAnnotation: "yours"},
			`{"metadata":{"annotations":{"ebbtide.dev/lock":"yours"},"resourceVersion":"12"}}`,
		},
		"it goes": {
			map[string]string{"team": "shop", v1alpha1.LockAnnotation: "mine"},
			map[string]string{},
			`{"metadata":{"annotations":{"ebbtide.dev/lock":null},"resourceVersion":"12"}}`,
		},
		"it goes as the last annotation": {
			map[string]string{v1alpha1.LockAnnotation: "mine"},
			nil,
			`{"metadata":{"annotations":{"ebbtide.dev/lock":null},"resourceVersion":"12"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cached := kube.StripBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", ResourceVersion: "12", Annotations: tc.before,
				ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: &written, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)},
				},
			}})
			changed := cached.DeepCopy()
			changed.Annotations = tc.after
			got, err := kube.Change(cached).Data(changed)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "patch", tc.want, string(got))
		})
	}
}
