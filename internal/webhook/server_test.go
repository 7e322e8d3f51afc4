package webhook

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// maintenanceOf names nodes, which need not exist.
func maintenanceOf(name string, nodes ...string) *v1alpha1.NodeMaintenance {
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeMaintenanceSpec{NodeSelector: &corev1.NodeSelector{}}}
	for _, node := range nodes {
		m.Spec.NodeSelector.NodeSelectorTerms = append(m.Spec.NodeSelector.NodeSelectorTerms, fieldTerm(corev1.NodeSelectorOpIn, node))
	}
	return m
}

func fieldTerm(operator corev1.NodeSelectorOperator, node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: operator, Values: []string{node}}}}
}

// believed is a clock that nobody doubts.
func believed() (time.Time, string) { return time.Now(), "" }
