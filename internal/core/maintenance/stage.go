package maintenance

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// effectiveStage is the stage that a maintenance is in: a deletion completes it,
// unless it has not begun.
func effectiveStage(m *v1alpha1.NodeMaintenance) v1alpha1.NodeMaintenanceStage {
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

func hasFinalizer(m *v1alpha1.NodeMaintenance) bool {
	return slices.Contains(m.Finalizers, v1alpha1.MaintenanceCompletionFinalizer)
}

// isFinished returns true if the Complete stage has run. It runs once: it is
// over when it was recorded and the finalizer, which comes before the record,
// is gone. An object under deletion takes no finalizer any more, so one without
// it was never acted on.
func isFinished(m *v1alpha1.NodeMaintenance, stage v1alpha1.NodeMaintenanceStage) bool {
	if stage != v1alpha1.StageComplete || hasFinalizer(m) {
		return false
	}
	return m.DeletionTimestamp != nil || hasStarted(m, v1alpha1.StageComplete)
}

// stages decides about spec.stage, the finalizer and the record of stages.
func (p *pass) stages(i *intent, d *MaintenanceDecision) {
	m := i.object
	d.Complete = i.stage == v1alpha1.StageComplete && m.Spec.Stage != v1alpha1.StageComplete
	switch {
	case i.stage == v1alpha1.StageIdle:
		// A finalizer that somebody put on an idle maintenance protects nothing.
		d.DropFinalizer = hasFinalizer(m) && m.DeletionTimestamp != nil
	case i.stage == v1alpha1.StageComplete && !i.starts && hasFinalizer(m):
		d.DropFinalizer = p.nothingLeft(i)
	default:
		d.AddFinalizer = !hasFinalizer(m) && m.DeletionTimestamp == nil
	}
	if i.starts {
		started := metav1.NewTime(p.snapshot.Now).Rfc3339Copy()
		d.Status.StageStatuses = append(slices.Clip(d.Status.StageStatuses),
			v1alpha1.StageStatus{Name: i.stage, StartTimestamp: &started})
		d.Record = true
	}
}

// nothingLeft returns true if, as far as the API shows, a Complete intent has
// nothing to do any more: its nodes are given back, its evacuations withdrawn.
func (p *pass) nothingLeft(i *intent) bool {
	drained := hasStarted(i.object, v1alpha1.StageDrain)
	for _, s := range p.sites {
		matched := slices.ContainsFunc(s.shares, func(one *share) bool { return one.intent == i })
		if !matched && !s.cordon.ledger.lists(i.name()) {
			continue
		}
		if s.cordon.change != nil || s.lock.change != nil || len(s.withdraw) > 0 || drained && !s.podsRead(p.snapshot) {
			return false
		}
	}
	return true
}

// podsRead returns true if the pods of the site are in the snapshot.
func (s *site) podsRead(snapshot Snapshot) bool {
	_, read := snapshot.Pods[s.node.Name]
	return read
}
