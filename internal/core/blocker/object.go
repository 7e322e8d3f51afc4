package blocker

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// ObjectText returns kind/namespace/name, or kind/name without a namespace; empty if unknown.
func ObjectText(o v1alpha1.BlockerObject) string {
	if o.Namespace == "" {
		return strings.Trim(o.Kind+"/"+o.Name, "/")
	}
	return o.Kind + "/" + o.Namespace + "/" + o.Name
}

// Explain returns what blocks, why, and what would help.
func Explain(b v1alpha1.Blocker) string {
	text := strings.TrimSuffix(b.Message, ".") + ". " + b.Suggestion
	if object := ObjectText(b.Object); object != "" {
		return object + ": " + text
	}
	return text
}

// CompareObjects orders objects by kind and name. It ignores UIDs, which some observers do not
// know.
func CompareObjects(a, b v1alpha1.BlockerObject) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.APIVersion, b.APIVersion),
	)
}

// OfBudget identifies a PodDisruptionBudget that was seen.
func OfBudget(b *policyv1.PodDisruptionBudget) v1alpha1.BlockerObject {
	object := budgetNamed(b.Namespace, b.Name)
	object.UID = b.UID
	return object
}

// OfNode identifies a Node.
func OfNode(n *corev1.Node) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
}

func budgetNamed(namespace, name string) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget", Namespace: namespace, Name: name}
}

func ofPod(pod *corev1.Pod) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// ofOwner identifies the pod's controller, or the pod itself if it has none or is static.
func ofOwner(pod *corev1.Pod) v1alpha1.BlockerObject {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || podclass.Type(pod) == v1alpha1.PodTypeStatic {
		return ofPod(pod)
	}
	return v1alpha1.BlockerObject{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID}
}
