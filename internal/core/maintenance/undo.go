package maintenance

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// CutShort returns the status of a maintenance that is ended for good.
func CutShort(m *v1alpha1.NodeMaintenance, now time.Time, why string) v1alpha1.NodeMaintenanceStatus {
	after := *m.Status.DeepCopy()
	at := metav1.NewTime(now).Rfc3339Copy()
	if !hasStarted(m, v1alpha1.StageComplete) {
		after.StageStatuses = append(slices.Clip(after.StageStatuses), v1alpha1.StageStatus{Name: v1alpha1.StageComplete, StartTimestamp: &at})
	}
	after.Summary, after.NodeStatuses = why, nil
	ending := metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCancelled, Message: why}
	if known := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionSucceeded); known != nil {
		ending = *known
	}
	after.Conditions = status.Conditions{Succeeded: &ending}.Apply(m, now)
	return after
}

// Begun returns true if the maintenance holds nodes, or has to give some back.
func Begun(m *v1alpha1.NodeMaintenance) bool {
	return !Finished(m) && Stage(m) != v1alpha1.StageIdle
}
