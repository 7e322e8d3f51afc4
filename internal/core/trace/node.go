package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

func ofNode(node *corev1.Node) Finding {
	var f Finding
	without := node.DeepCopy()
	unschedulable, known, held := cordon.GivenBack(node)
	switch {
	case !held:
	case !known:
		f.Does = append(f.Does, "leave it as it is")
		f.Notes = append(f.Notes, "its state before the maintenance is unknown. To make it schedulable: kubectl uncordon")
	case node.Spec.Unschedulable && !unschedulable:
		f.Does = append(f.Does, "make it schedulable")
	case unschedulable:
		f.Does = append(f.Does, "leave it cordoned, as it was before its maintenance")
	}
	without.Spec.Unschedulable = unschedulable
	f.Does = append(f.Does, remove("annotation", without.Annotations,
		v1alpha1.CordonAnnotation, v1alpha1.DrainTargetsAnnotation, v1alpha1.HandedOverByAnnotation, v1alpha1.RebootPromiseAnnotation)...)
	f.Does = append(f.Does, unprotect(without, cordon.Unprotected(node))...)
	for _, drain := range foreigndrain.Of(node) {
		if drain.Removes && node.Spec.Unschedulable && !unschedulable {
			f.Notes = append(f.Notes, drain.Sentence(node))
		}
	}
	f.Does = append(f.Does, remove("label", without.Labels, v1alpha1.DaemonSetDrainLabel, v1alpha1.HandedOverLabel)...)
	if cordon.SuppressesAll(node) {
		f.Does = append(f.Does, "remove taint "+v1alpha1.DaemonSetTaint)
		without.Spec.Taints = slices.DeleteFunc(without.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == v1alpha1.DaemonSetTaint && taint.Effect == corev1.TaintEffectNoSchedule
		})
	}
	if len(f.Does) > 0 {
		f.Without = without
	}
	if f.Announced = announcement.Types(node); len(f.Announced) > 0 {
		f.Does = append(f.Does, "remove "+conditions(f.Announced))
	}
	return f
}

func remove(what string, from map[string]string, keys ...string) (does []string) {
	for _, key := range keys {
		if _, there := from[key]; there {
			delete(from, key)
			does = append(does, "remove "+what+" "+key)
		}
	}
	return does
}

// unprotect restores the protection from autoscalers to its earlier state.
func unprotect(node *corev1.Node, back map[string]*string) (does []string) {
	for _, key := range slices.Sorted(maps.Keys(back)) {
		delete(node.Annotations, key)
		if was := back[key]; was != nil {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, key, *was)
			does = append(does, fmt.Sprintf("restore annotation %s to %q", key, excerpt.Line(*was, maxNote)))
			continue
		}
		does = append(does, "remove annotation "+key)
	}
	return does
}

func conditions(types []corev1.NodeConditionType) string {
	words := make([]string, len(types))
	for i := range types {
		words[i] = string(types[i])
	}
	return "conditions " + excerpt.Line(strings.Join(words, ", "), maxNote)
}
