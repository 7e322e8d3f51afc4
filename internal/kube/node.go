package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Hold is how a maintenance holds a node. The zero value gives the node back.
type Hold struct {
	// Unschedulable is spec.unschedulable.
	Unschedulable bool
	// Ledger is the value of v1alpha1.CordonAnnotation; empty is none.
	Ledger string
	// DrainTargets is the value of v1alpha1.DrainTargetsAnnotation; empty is none, and no
	// v1alpha1.DaemonSetDrainLabel.
	DrainTargets string
	// Suppress is whether v1alpha1.DaemonSetTaint is there.
	Suppress bool
	// HandedOverBy is the value of v1alpha1.HandedOverByAnnotation; empty is none, and no
	// v1alpha1.HandedOverLabel.
	HandedOverBy string
	// Protection are annotations by which autoscalers leave the node alone: their values by
	// key, nil is none. Those that it does not have stay as they are.
	Protection map[string]*string
}

// Cordon sets or lifts the hold on a node in one write under the resource version
// that the node was read at: there is no moment at which a part of it is there
// without the others.
func Cordon(ctx context.Context, c client.Client, node *corev1.Node, hold Hold) error {
	changed := node.DeepCopy()
	changed.Spec.Unschedulable = hold.Unschedulable
	annotate(changed, v1alpha1.CordonAnnotation, hold.Ledger)
	annotate(changed, v1alpha1.DrainTargetsAnnotation, hold.DrainTargets)
	annotate(changed, v1alpha1.HandedOverByAnnotation, hold.HandedOverBy)
	for key, value := range hold.Protection {
		delete(changed.Annotations, key)
		if value != nil {
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, *value)
		}
	}
	label(changed, v1alpha1.HandedOverLabel, hold.HandedOverBy != "")
	label(changed, v1alpha1.DaemonSetDrainLabel, hold.DrainTargets != "")
	suppress(changed, hold.Suppress)
	return c.Patch(ctx, changed, Change(node))
}

// MakeUnschedulable keeps new pods off a node under the resource version that it
// was read at, and leaves the ledger of maintenances alone.
func MakeUnschedulable(ctx context.Context, c client.Client, node *corev1.Node) error {
	changed := node.DeepCopy()
	changed.Spec.Unschedulable = true
	return c.Patch(ctx, changed, Change(node))
}

// annotate sets an annotation; an empty value removes it.
func annotate(node *corev1.Node, key, value string) {
	if value == "" {
		delete(node.Annotations, key)
		return
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
}

// label sets or removes a label of ours.
func label(node *corev1.Node, key string, wanted bool) {
	if !wanted {
		delete(node.Labels, key)
		return
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, key, "true")
}

// suppress sets or removes our taint. One of the same key and another effect is
// somebody else's.
func suppress(node *corev1.Node, wanted bool) {
	ours := func(taint corev1.Taint) bool {
		return taint.Key == v1alpha1.DaemonSetTaint && taint.Effect == corev1.TaintEffectNoSchedule
	}
	switch present := slices.ContainsFunc(node.Spec.Taints, ours); {
	case wanted && !present:
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule})
	case present && !wanted:
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, ours)
	}
}

// Conditions are what is published of a node.
type Conditions struct {
	Set     []corev1.NodeCondition
	Removed []corev1.NodeConditionType
	// Pinned is true if they are only right for the node as it was read.
	Pinned bool
}

// PublishConditions writes and removes node conditions with one strategic merge
// patch, so that those of others, the kubelet's above all, stay untouched. If they are
// pinned, that is refused if the node has changed since it was read.
func PublishConditions(ctx context.Context, c client.Client, node *corev1.Node, published Conditions) error {
	changes := make([]any, 0, len(published.Set)+len(published.Removed))
	for i := range published.Set {
		changes = append(changes, published.Set[i])
	}
	for _, conditionType := range published.Removed {
		changes = append(changes, map[string]any{"$patch": "delete", "type": conditionType})
	}
	content := map[string]any{"status": map[string]any{"conditions": changes}}
	if published.Pinned {
		content["metadata"] = map[string]any{"resourceVersion": node.ResourceVersion}
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the conditions of node %s: %w", node.Name, err)
	}
	return c.Status().Patch(ctx, node.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
}
