// Package lifecycle decides the life of a Machine: what is created before its Node can run, and
// in which order everything is deleted (machine-deletion-process, machine-deletion-hooks). A
// deletion is a list of steps. It only moves forward, records the start of a step before it
// acts, and never skips a step because a read failed. Objects that another controller owns are
// neither adopted nor deleted.
package lifecycle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// Decide returns the next actions for the Machine.
func Decide(s Snapshot) Decision {
	p := newPlanner(s)
	switch {
	case p.deleting() && !p.hasFinalizer():
		p.decision.Step = StepReleased
	case s.Cluster.Problem != "":
		p.reportUnread()
	case s.Cluster.Object != nil && s.Cluster.Object.Spec.Paused:
		p.pause()
	case p.deleting():
		p.delete()
	default:
		p.create()
	}
	p.reportFailure()
	p.announce()
	return p.decision
}

type planner struct {
	Snapshot
	node observedNode
	// untouchable says why the Node is kept, unclear why that is unknown; both empty if it is not
	// kept.
	untouchable, unclear string
	// left describes what the deletion leaves behind.
	left []string

	decision Decision
}

func newPlanner(s Snapshot) *planner {
	p := &planner{Snapshot: s, decision: Decision{Status: *s.Machine.Status.DeepCopy()}}
	p.node = p.findNode()
	p.untouchable, p.unclear = p.whyUntouchable()
	return p
}

func (p *planner) deleting() bool { return p.Machine.DeletionTimestamp != nil }

func (p *planner) hasFinalizer() bool {
	return slices.Contains(p.Machine.Finalizers, v1alpha1.MachineFinalizer)
}

func (p *planner) reportUnread() {
	p.decision.Step = StepUnknown
	message := fmt.Sprintf("The Machine is not changed because %s could not be read: %s", p.cluster(), p.Cluster.Problem)
	switch {
	case p.deleting():
		p.set(v1alpha1.ConditionDeleting, metav1.ConditionTrue, v1alpha1.ReasonUnknown, message)
	case p.created():
		p.set(v1alpha1.ConditionNodeReady, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, message)
	default:
		p.set(v1alpha1.ConditionCreatable, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, message)
	}
}

func (p *planner) pause() {
	p.decision.Step = StepPaused
	p.set(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused,
		fmt.Sprintf("The Machine is not changed because spec.paused of %s is true.", p.cluster()))
}

func (p *planner) observe() {
	p.decision.Status.ObservedGeneration = p.Machine.Generation
	meta.RemoveStatusCondition(&p.decision.Status.Conditions, v1alpha1.ConditionPaused)
	p.decision.Status.InfrastructureSeen = p.Machine.Status.InfrastructureSeen || owned(p.Infrastructure)
	p.setCreatable()
	p.setHeld(v1alpha1.ConditionDrainable, "pre-drain", preDrainHooks(p.Machine))
	p.setHeld(v1alpha1.ConditionTerminable, "pre-terminate", preTerminateHooks(p.Machine))
	p.setState(v1alpha1.ConditionBootstrapReady, p.bootstrapState())
	p.setState(v1alpha1.ConditionInfrastructureReady, p.infrastructureState())
	p.setState(v1alpha1.ConditionNodeReady, p.node.state)
}

func (p *planner) setHeld(condition, point string, hooks []string) {
	if len(hooks) == 0 {
		p.set(condition, metav1.ConditionTrue, v1alpha1.ReasonNoHooks, fmt.Sprintf("There are no %s hooks.", point))
		return
	}
	p.set(condition, metav1.ConditionFalse, v1alpha1.ReasonHookPresent, heldBy(point, hooks))
}

func (p *planner) setState(condition string, s state) {
	p.set(condition, s.status(), s.reason, s.message)
}

func (p *planner) set(condition string, status metav1.ConditionStatus, reason, message string) {
	changed := p.now()
	if before := meta.FindStatusCondition(p.Machine.Status.Conditions, condition); before != nil && before.Status == status {
		changed = before.LastTransitionTime
	}
	conditions := &p.decision.Status.Conditions
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: evacuation.Shorten(message), ObservedGeneration: p.Machine.Generation,
	})
	meta.FindStatusCondition(*conditions, condition).LastTransitionTime = changed
}

// now returns the time as the API stores it.
func (p *planner) now() metav1.Time { return metav1.NewTime(p.Now.UTC()).Rfc3339Copy() }

func (p *planner) before(condition string) string {
	if c := meta.FindStatusCondition(p.Machine.Status.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

func (p *planner) cluster() string {
	return fmt.Sprintf("Cluster %s/%s", p.Machine.Namespace, p.Machine.Spec.ClusterName)
}
