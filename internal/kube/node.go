package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Cordon sets or lifts the cordon of a node together with its ledger, in one
// write under the resource version that the node was read at: there is no
// moment at which one is there without the other. An empty ledger removes it.
func Cordon(ctx context.Context, c client.Client, node *corev1.Node, unschedulable bool, ledger string) error {
	changed := node.DeepCopy()
	changed.Spec.Unschedulable = unschedulable
	if ledger == "" {
		delete(changed.Annotations, v1alpha1.CordonAnnotation)
	} else {
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations[v1alpha1.CordonAnnotation] = ledger
	}
	return c.Patch(ctx, changed, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
}

// PublishConditions writes node conditions with one strategic merge patch, so
// that the conditions of others, the kubelet's above all, stay untouched.
func PublishConditions(ctx context.Context, c client.Client, node *corev1.Node, conditions []corev1.NodeCondition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return fmt.Errorf("encode the conditions of node %s: %w", node.Name, err)
	}
	return c.Status().Patch(ctx, node.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
}
