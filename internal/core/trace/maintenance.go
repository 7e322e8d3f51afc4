package trace

import (
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// ofMaintenance ends a maintenance that has begun. A planned one stays a plan: if it were complete,
// a later manager would make its nodes schedulable. A completed one is history.
func ofMaintenance(m *v1alpha1.NodeMaintenance, facts Facts) Finding {
	f := held(m, func(finalizer string) bool {
		return finalizer == v1alpha1.MaintenanceCompletionFinalizer || finalizer == v1alpha1.RolloutFinalizer
	})
	if !maintenance.Begun(m) {
		return f
	}
	status := maintenance.CutShort(m, facts.Now, facts.Why)
	f.Status = &status
	if m.Spec.Stage == v1alpha1.StageComplete {
		f.Does = append([]string{"mark it as complete"}, f.Does...)
		return f
	}
	if f.Without == nil {
		f.Without = m.DeepCopy()
	}
	ended, _ := f.Without.(*v1alpha1.NodeMaintenance)
	ended.Spec.Stage = v1alpha1.StageComplete
	if _, handedOver := m.Annotations[v1alpha1.HandedOverAnnotation]; handedOver {
		delete(ended.Annotations, v1alpha1.HandedOverAnnotation)
		f.Does = append(f.Does, "remove annotation "+v1alpha1.HandedOverAnnotation)
	}
	f.Does = append([]string{fmt.Sprintf("set stage Complete instead of %s", excerpt.Line(string(m.Spec.Stage), maxNote))}, f.Does...)
	return f
}

// ofRollout deletes a rollout: a later manager would start further nodes. Its NodeMaintenances end as
// others do.
func ofRollout(r *v1alpha1.NodeRollout) Finding {
	f := held(r, is(v1alpha1.RolloutFinalizer))
	f.Delete, f.Does = true, append([]string{"delete it"}, f.Does...)
	return f
}
