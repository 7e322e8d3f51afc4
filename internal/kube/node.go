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

// Hold specifies how a maintenance holds a node. The zero value releases the node.
type Hold struct {
	Unschedulable bool
	// Ledger is the value of v1alpha1.CordonAnnotation, if any.
	Ledger string
	// DrainTargets is the value of v1alpha1.DrainTargetsAnnotation, if any; with it comes
	// v1alpha1.DaemonSetDrainLabel.
	DrainTargets string
	// Suppress adds v1alpha1.DaemonSetTaint.
	Suppress bool
	// HandedOverBy is the value of v1alpha1.HandedOverByAnnotation, if any; with it comes
	// v1alpha1.HandedOverLabel.
	HandedOverBy string
	// Protection holds annotations for autoscalers; a nil value removes one.
	Protection map[string]*string
}

// Cordon sets or removes the hold on a node in one write under the resource version that was read.
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

// MakeUnschedulable sets spec.unschedulable under the resource version that was read, and leaves
// the ledger of maintenances alone.
func MakeUnschedulable(ctx context.Context, c client.Client, node *corev1.Node) error {
	changed := node.DeepCopy()
	changed.Spec.Unschedulable = true
	return c.Patch(ctx, changed, Change(node))
}

func label(node *corev1.Node, key string, wanted bool) {
	if !wanted {
		delete(node.Labels, key)
		return
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, key, "true")
}

// suppress sets or removes our taint. One with another effect is not ours.
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

// Conditions are the node conditions to write.
type Conditions struct {
	Set     []corev1.NodeCondition
	Removed []corev1.NodeConditionType
	// Pinned is true if they are only valid for the node as it was read.
	Pinned bool
}

// PublishConditions writes and removes node conditions with one strategic merge patch that leaves
// those of others alone. Pinned ones are refused if the node has changed.
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
