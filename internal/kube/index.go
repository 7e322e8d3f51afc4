package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodNodeField is the field index that finds the pods of a node.
const PodNodeField = "spec.nodeName"

// IndexFields adds the field indexes that the shells read by. Call it before
// the cache starts.
//
// Errors: the index exists already, or the cache cannot be set up.
func IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, PodNodeField, PodNode); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	return nil
}

// PodNode extracts PodNodeField; a pod without a node is in no index.
func PodNode(object client.Object) []string {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return []string{pod.Spec.NodeName}
}
