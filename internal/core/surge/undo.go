package surge

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Undone returns a pod without anything that surging has written on it, at once and whoever
// takes it back. A hash or a deletion cost that no pod can have is not put back: nobody
// could write it. It is the argument itself if there is nothing to undo.
func Undone(pod *corev1.Pod) *corev1.Pod {
	undone := pod
	record, readable := recordOf(pod)
	readable = readable && len(validation.IsValidLabelValue(record.Hash)) == 0
	switch detached := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == detachedHash; {
	case detached && readable:
		undone = giveBackLabel(undone, record)
	case detached:
		undone = changedCopy(undone)
		delete(undone.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	}
	if _, annotated := pod.Annotations[v1alpha1.SurgeAnnotation]; annotated {
		undone = dropRecord(undone)
	}
	if _, annotated := pod.Annotations[v1alpha1.SurgeReplacementAnnotation]; annotated {
		undone = unmarked(undone)
	}
	return undone
}

func isCost(text string) bool {
	_, err := strconv.ParseInt(text, 10, 32)
	return err == nil
}

// unmarked returns a pod that makes room for nobody. Where it cannot be read what the pod cost
// before, what it costs now may be its owner's.
func unmarked(pod *corev1.Pod) *corev1.Pod {
	mark, readable := markOf(pod)
	if readable && (mark.Cost == nil || isCost(*mark.Cost)) {
		return unmark(pod, mark)
	}
	changed := changedCopy(pod)
	delete(changed.Annotations, v1alpha1.SurgeReplacementAnnotation)
	return changed
}
