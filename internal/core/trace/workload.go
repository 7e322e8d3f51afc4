package trace

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

// ofPod ungates a pod, and returns a detached one to its ReplicaSet, which removes a surplus pod.
func ofPod(pod *corev1.Pod, facts Facts) Finding {
	var f Finding
	without := surge.Undone(pod).DeepCopy()
	const hash = appsv1.DefaultDeploymentUniqueLabelKey
	switch after := without.Labels[hash]; {
	case after == pod.Labels[hash]:
	case after == "":
		f.Does = append(f.Does, "remove label "+hash)
		f.Notes = append(f.Notes, "its origin is unknown, so it has no owner. Delete it if it is not needed")
	default:
		f.Does = append(f.Does, "return it to its ReplicaSet")
		if facts.Homeless {
			f.Notes = append(f.Notes, "its ReplicaSet no longer exists. Delete it if it is not needed")
		}
	}
	for _, key := range []string{v1alpha1.SurgeAnnotation, v1alpha1.SurgeReplacementAnnotation} {
		if _, annotated := pod.Annotations[key]; annotated {
			f.Does = append(f.Does, "remove annotation "+key)
		}
	}
	if daemonset.Held(pod) {
		f.Does = append(f.Does, "remove scheduling gate "+v1alpha1.MaintenanceGate)
		without.Spec.SchedulingGates = slices.DeleteFunc(without.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool {
			return gate.Name == v1alpha1.MaintenanceGate
		})
	}
	if len(f.Does) > 0 {
		f.Without = without
	}
	return f
}

func ofBudget(b *policyv1.PodDisruptionBudget, facts Facts) Finding {
	if _, locked := b.Annotations[v1alpha1.LockAnnotation]; !locked {
		return Finding{}
	}
	without := b.DeepCopy()
	delete(without.Annotations, v1alpha1.LockAnnotation)
	f := Finding{Without: without, Does: []string{"remove annotation " + v1alpha1.LockAnnotation}}
	hold, inForce := budget.LockOf(b, facts.Now, 0)
	if _, _, drains := hold.Drain(); inForce && !drains {
		f.Notes = append(f.Notes, "its lock is no longer enforced: "+excerpt.Line(hold.Describe(b), maxNote))
	}
	return f
}
