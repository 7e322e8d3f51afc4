package maintenance

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

var stageOrder = map[v1alpha1.NodeMaintenanceStage]int{
	v1alpha1.StageIdle: 0, v1alpha1.StageCordon: 1, v1alpha1.StageDrain: 2, v1alpha1.StageComplete: 3,
}

// Past returns true if a maintenance is in a later stage than this one.
func Past(m *v1alpha1.NodeMaintenance, stage v1alpha1.NodeMaintenanceStage) bool {
	return stageOrder[Stage(m)] > stageOrder[stage]
}

// Stage returns the stage of a maintenance, which a deletion completes unless it has not begun.
func Stage(m *v1alpha1.NodeMaintenance) v1alpha1.NodeMaintenanceStage {
	switch {
	case m.Spec.Stage == "" || m.Spec.Stage == v1alpha1.StageIdle:
		return v1alpha1.StageIdle
	case m.DeletionTimestamp != nil:
		return v1alpha1.StageComplete
	default:
		return m.Spec.Stage
	}
}

func hasStarted(m *v1alpha1.NodeMaintenance, stages ...v1alpha1.NodeMaintenanceStage) bool {
	return slices.ContainsFunc(m.Status.StageStatuses, func(s v1alpha1.StageStatus) bool { return slices.Contains(stages, s.Name) })
}

func drainBegan(m *v1alpha1.NodeMaintenance) time.Time {
	for _, stage := range m.Status.StageStatuses {
		if stage.Name == v1alpha1.StageDrain && stage.StartTimestamp != nil {
			return stage.StartTimestamp.Time
		}
	}
	return time.Time{}
}

func hasFinalizer(m *v1alpha1.NodeMaintenance) bool {
	return slices.Contains(m.Finalizers, v1alpha1.MaintenanceCompletionFinalizer)
}

// Finished returns true if the Complete stage has run: it was recorded, and the finalizer, which
// comes before the record, is gone. An object under deletion takes no finalizer, so one without
// it was never acted on.
func Finished(m *v1alpha1.NodeMaintenance) bool {
	if Stage(m) != v1alpha1.StageComplete || hasFinalizer(m) {
		return false
	}
	return m.DeletionTimestamp != nil || hasStarted(m, v1alpha1.StageComplete)
}

// advanceStage decides about spec.stage, the finalizer and the recorded stages.
func (c *conclusion) advanceStage(m *maintenance, d *MaintenanceDecision) {
	object := m.object
	d.Complete = m.stage == v1alpha1.StageComplete && object.Spec.Stage != v1alpha1.StageComplete
	switch {
	case m.stage == v1alpha1.StageIdle:
		// On an idle maintenance, the finalizer protects nothing.
		d.DropFinalizer = hasFinalizer(object) && object.DeletionTimestamp != nil
	case m.stage == v1alpha1.StageComplete && !m.starts && hasFinalizer(object):
		d.DropFinalizer = c.nothingLeft(m)
	default:
		d.AddFinalizer = !hasFinalizer(object) && object.DeletionTimestamp == nil
	}
	for _, stage := range m.runs() {
		started := metav1.NewTime(c.Now).Rfc3339Copy()
		d.Status.StageStatuses = append(slices.Clip(d.Status.StageStatuses),
			v1alpha1.StageStatus{Name: stage, StartTimestamp: &started})
	}
	d.Record = m.starts
}

// runs returns the stages that begin with this decision. Every drain has its cordon.
func (m *maintenance) runs() []v1alpha1.NodeMaintenanceStage {
	switch {
	case m.stage == v1alpha1.StageIdle && m.object.DeletionTimestamp == nil && !hasStarted(m.object, m.stage):
		return []v1alpha1.NodeMaintenanceStage{m.stage}
	case !m.starts:
		return nil
	case m.stage == v1alpha1.StageDrain && !hasStarted(m.object, v1alpha1.StageCordon):
		return []v1alpha1.NodeMaintenanceStage{v1alpha1.StageCordon, m.stage}
	default:
		return []v1alpha1.NodeMaintenanceStage{m.stage}
	}
}

// nothingLeft reports whether all nodes are given back and all Evacuations withdrawn.
func (c *conclusion) nothingLeft(m *maintenance) bool {
	drained := hasStarted(m.object, v1alpha1.StageDrain)
	left := func(n *node) bool {
		o := &c.nodes[n.index]
		return o.cordon.Change != nil || o.cordon.Awaited || o.lock.Change != nil || len(o.withdrawals) > 0 || drained && !n.read
	}
	return !slices.ContainsFunc(m.listed, left) &&
		!slices.ContainsFunc(m.selections, func(one *selection) bool { return left(one.node) })
}
