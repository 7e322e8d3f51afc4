package cordon

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func showsHandOver(node *corev1.Node, by string) bool {
	label, labelled := node.Labels[v1alpha1.HandedOverLabel]
	shown, annotated := node.Annotations[v1alpha1.HandedOverByAnnotation]
	if by == "" {
		return !labelled && !annotated
	}
	return shown == by && label == "true"
}

// Marked returns true if a maintenance has left something on the node that a Change removes.
func Marked(node *corev1.Node) bool {
	return Of(node) != nil || suppressionOn(node) != (Suppression{}) || !showsHandOver(node, "")
}
