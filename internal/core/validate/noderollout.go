package validate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// RolloutChange is a request; Old is nil on creation, New on deletion.
type RolloutChange struct {
	Old, New *v1alpha1.NodeRollout
	Nodes    []*corev1.Node
	Now      time.Time
}

// Affected returns the names of the nodes that the NodeRollout selects before or after the change, in
// order, and of those that it names for later. The author must be allowed to delete each, also control
// plane nodes and those in spec.nodes that it leaves out: both can change later. The error names the
// field of an invalid selector.
func (c RolloutChange) Affected() ([]string, error) {
	return MaintenanceChange{Old: drains(c.Old), New: drains(c.New), Nodes: c.Nodes}.Affected()
}

// TakesLaterNodes reports whether a term without a name may select later nodes.
func (c RolloutChange) TakesLaterNodes() bool {
	if c.Ends() || c.keepsSpec() {
		return false
	}
	return MaintenanceChange{New: drains(c.New)}.TakesLaterNodes()
}

func (c RolloutChange) keepsSpec() bool {
	return c.Old != nil && equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec)
}

// Ends returns true if the change starts no node from now on, but gives back those that are not
// drained.
func (c RolloutChange) Ends() bool {
	return c.New == nil || c.New.DeletionTimestamp != nil || c.New.Spec.State == v1alpha1.RolloutAborted
}

// drains returns a NodeMaintenance of all nodes of a rollout; nil for nil.
func drains(r *v1alpha1.NodeRollout) *v1alpha1.NodeMaintenance {
	if r == nil {
		return nil
	}
	m := &v1alpha1.NodeMaintenance{}
	m.DeletionTimestamp = r.DeletionTimestamp
	m.Spec = v1alpha1.NodeMaintenanceSpec{NodeSelector: r.Spec.NodeSelector, Stage: v1alpha1.StageDrain}
	if r.Spec.State == v1alpha1.RolloutAborted {
		m.Spec.Stage = v1alpha1.StageComplete
	}
	return m
}

// Refusals returns what is invalid after the change, and the CRD does not see. Each names its field. A
// rollout that ends or keeps its spec is not refused.
func (c RolloutChange) Refusals() []string {
	if c.Ends() || c.keepsSpec() {
		return nil
	}
	return RolloutFaults(&c.New.Spec)
}

// RolloutFaults returns what is invalid in a spec. Each names its field.
func RolloutFaults(spec *v1alpha1.NodeRolloutSpec) (faults []string) {
	_, unreadable := rollout.Read(spec)
	_, unplanned := drainplan.Compile("spec.maintenance.drainPlan", spec.Maintenance.DrainPlan)
	for _, err := range []error{unreadable, unplanned} {
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// WithdrawsApproval reports whether the change concerns nodes or work that nobody has approved.
func (c RolloutChange) WithdrawsApproval() bool {
	if c.Old == nil || c.New == nil || c.New.Spec.Canary == nil || c.New.Spec.Canary.Approved == nil {
		return false
	}
	before, after := &c.Old.Spec, &c.New.Spec
	same := equality.Semantic.DeepEqual
	return *after.Canary.Approved && !(same(before.NodeSelector, after.NodeSelector) &&
		same(before.Target, after.Target) && same(before.When, after.When) && before.Reboot == after.Reboot && same(before.Job, after.Job) &&
		(before.After == v1alpha1.AfterReplace) == (after.After == v1alpha1.AfterReplace))
}
