package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// A hold comes, changes and goes in one write each. What others have set stays,
// also what the cache does not keep.
func TestAHoldComesAndGoesAsAWhole(t *testing.T) {
	t.Parallel()
	theirs := []corev1.Taint{
		{Key: "example.com/gpu", Effect: corev1.TaintEffectNoSchedule},
		{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoExecute, Value: "theirs"},
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{"example.com/theirs": "kept"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Taints: theirs},
	}
	c := fake.NewClientBuilder().WithObjects(node).Build()
	ours := corev1.Taint{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule}
	for _, step := range []struct {
		hold        kube.Hold
		annotations map[string]string
		taints      []corev1.Taint
	}{
		{
			kube.Hold{Unschedulable: true, Ledger: "{}"},
			map[string]string{"example.com/theirs": "kept", v1alpha1.CordonAnnotation: "{}"},
			theirs,
		},
		{
			kube.Hold{Unschedulable: true, Ledger: "{}", DrainTargets: "[]", Suppress: true},
			map[string]string{"example.com/theirs": "kept", v1alpha1.CordonAnnotation: "{}", v1alpha1.DrainTargetsAnnotation: "[]"},
			[]corev1.Taint{theirs[0], theirs[1], ours},
		},
		{
			kube.Hold{Unschedulable: true, Ledger: "{1}", DrainTargets: "[1]", Suppress: true},
			map[string]string{"example.com/theirs": "kept", v1alpha1.CordonAnnotation: "{1}", v1alpha1.DrainTargetsAnnotation: "[1]"},
			[]corev1.Taint{theirs[0], theirs[1], ours},
		},
		{
			kube.Hold{Unschedulable: true, Ledger: "{1}", HandedOverBy: "m"},
			map[string]string{"example.com/theirs": "kept", v1alpha1.CordonAnnotation: "{1}", v1alpha1.HandedOverByAnnotation: "m"},
			theirs,
		},
		{kube.Hold{}, map[string]string{"example.com/theirs": "kept"}, theirs},
	} {
		before := node.DeepCopy()
		get(t, c, before)
		if err := kube.Cordon(t.Context(), c, kube.StripNode(before), step.hold); err != nil {
			t.Fatalf("hold %+v: %v", step.hold, err)
		}
		got := node.DeepCopy()
		get(t, c, got)
		want := corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Taints: step.taints, Unschedulable: step.hold.Unschedulable}
		same(t, "spec", want, got.Spec)
		same(t, "annotations", step.annotations, got.Annotations)
		for key, with := range map[string]string{v1alpha1.HandedOverLabel: step.hold.HandedOverBy, v1alpha1.DaemonSetDrainLabel: step.hold.DrainTargets} {
			if label, labelled := got.Labels[key]; labelled != (with != "") || labelled && label != "true" {
				t.Errorf("hold %+v: the labels are %v", step.hold, got.Labels)
			}
		}
		if err := kube.Cordon(t.Context(), c, kube.StripNode(before), kube.Hold{Ledger: "late"}); !apierrors.IsConflict(err) {
			t.Errorf("a write that was decided on old state: error %v, want a conflict", err)
		}
	}
}

// The last taint of a node is taken off, and no other field with it.
func TestTheLastTaintGoes(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	c := fake.NewClientBuilder().WithObjects(node).Build()
	for _, suppress := range []bool{true, false} {
		get(t, c, node)
		if err := kube.Cordon(t.Context(), c, node, kube.Hold{Suppress: suppress}); err != nil {
			t.Fatal(err)
		}
	}
	get(t, c, node)
	if diff := cmp.Diff(corev1.NodeSpec{}, node.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func get(t *testing.T, c client.Client, node *corev1.Node) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatalf("get the node: %v", err)
	}
}

// Conditions come and go by their type; those of others stay as they are.
func TestConditionsArePublishedAndRemoved(t *testing.T) {
	t.Parallel()
	kubelets := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}
	planned := corev1.NodeCondition{Type: v1alpha1.NodeMaintenancePlanned, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNodeMaintenance}
	drained := corev1.NodeCondition{Type: v1alpha1.NodeDrained, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonNodeMaintenance}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{kubelets, planned}},
	}
	c := fake.NewClientBuilder().WithObjects(node).WithStatusSubresource(node).Build()
	for _, step := range []struct {
		published []corev1.NodeCondition
		removed   []corev1.NodeConditionType
		want      []corev1.NodeCondition
	}{
		{[]corev1.NodeCondition{drained}, []corev1.NodeConditionType{planned.Type}, []corev1.NodeCondition{kubelets, drained}},
		{nil, []corev1.NodeConditionType{drained.Type, planned.Type}, []corev1.NodeCondition{kubelets}},
	} {
		if err := kube.PublishConditions(t.Context(), c, node, kube.Conditions{Set: step.published, Removed: step.removed}); err != nil {
			t.Fatal(err)
		}
		got := node.DeepCopy()
		get(t, c, got)
		byType := cmpopts.SortSlices(func(a, b corev1.NodeCondition) bool { return a.Type > b.Type })
		if diff := cmp.Diff(step.want, got.Status.Conditions, byType); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
}

// Who takes over what somebody else has said must not take what they say anew.
func TestPinnedConditionsAreForTheNodeAsItWasRead(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	c := fake.NewClientBuilder().WithObjects(node).WithStatusSubresource(node).Build()
	get(t, c, node)
	begun := corev1.NodeCondition{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "KubectlDrainStarted"}
	if err := kube.PublishConditions(t.Context(), c, node, kube.Conditions{Set: []corev1.NodeCondition{begun}}); err != nil {
		t.Fatal(err)
	}
	ours := begun
	ours.Reason = v1alpha1.ReasonNodeMaintenance
	if err := kube.PublishConditions(t.Context(), c, node, kube.Conditions{Set: []corev1.NodeCondition{ours}, Pinned: true}); !apierrors.IsConflict(err) {
		t.Errorf("%v, want that it is too late", err)
	}
	get(t, c, node)
	if diff := cmp.Diff([]corev1.NodeCondition{begun}, node.Status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
