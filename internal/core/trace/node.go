package trace

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// ofNode gives a node back as the last maintenance would.
func ofNode(node *corev1.Node) Finding {
	var f Finding
	without := node.DeepCopy()
	unschedulable, known, held := maintenance.GivenBack(node)
	switch {
	case !held:
	case !known:
		f.Does = append(f.Does, "leave it as it is")
		f.Notes = append(f.Notes, "nobody can read what it was before its maintenance: uncordon it by hand if it is to take pods")
	case node.Spec.Unschedulable && !unschedulable:
		f.Does = append(f.Does, "make it schedulable")
	case unschedulable:
		f.Does = append(f.Does, "leave it cordoned, as it was before its maintenance")
	}
	without.Spec.Unschedulable = unschedulable
	for _, key := range []string{v1alpha1.CordonAnnotation, v1alpha1.DrainTargetsAnnotation, v1alpha1.HandedOverByAnnotation} {
		if _, annotated := node.Annotations[key]; annotated {
			f.Does = append(f.Does, "remove annotation "+key)
			delete(without.Annotations, key)
		}
	}
	if _, labelled := node.Labels[v1alpha1.HandedOverLabel]; labelled {
		f.Does = append(f.Does, "remove label "+v1alpha1.HandedOverLabel)
		delete(without.Labels, v1alpha1.HandedOverLabel)
	}
	if maintenance.SuppressesAll(node) {
		f.Does = append(f.Does, "remove taint "+v1alpha1.DaemonSetTaint)
		without.Spec.Taints = slices.DeleteFunc(without.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == v1alpha1.DaemonSetTaint && taint.Effect == corev1.TaintEffectNoSchedule
		})
	}
	if len(f.Does) > 0 {
		f.Without = without
	}
	if f.Announced = maintenance.Announcing(node); len(f.Announced) > 0 {
		f.Does = append(f.Does, "remove "+conditions(f.Announced))
	}
	return f
}

// conditions names conditions, whose types somebody else may have written.
func conditions(types []corev1.NodeConditionType) string {
	words := make([]string, len(types))
	for i := range types {
		words[i] = string(types[i])
	}
	return "conditions " + excerpt.Line(strings.Join(words, ", "), maxNote)
}
