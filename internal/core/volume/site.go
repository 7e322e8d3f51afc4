package volume

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Sites returns the only nodes that can use a volume; none if it is not restricted.
func Sites(v *corev1.PersistentVolume, nodes []*metav1.PartialObjectMetadata) []*metav1.PartialObjectMetadata {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return nil
	}
	selector := nodeaffinity.NewLazyErrorNodeSelector(v.Spec.NodeAffinity.Required)
	var sites []*metav1.PartialObjectMetadata
	for _, node := range nodes {
		if matches, err := selector.Match(&corev1.Node{ObjectMeta: node.ObjectMeta}); err == nil && matches {
			sites = append(sites, node)
		}
	}
	return sites
}
