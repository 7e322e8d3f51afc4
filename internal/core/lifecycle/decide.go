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

// Decide returns what happens next to the Machine.
func Decide(s Snapshot) Decision {
	p := newPass(s)
	switch {
	case p.deleting() && !p.held():
		p.decision.Step = StepReleased
	case s.Cluster.Problem != "":
		p.tellUnread()
	case s.Cluster.Object != nil && s.Cluster.Object.Spec.Paused:
		p.pause()
	case p.deleting():
		p.delete()
	default:
		p.create()
	}
	p.tellFailure()
	p.announce()
	return p.decision
}

// pass is one decision in the making.
type pass struct {
	Snapshot
	// sight is what is known of the Node.
	sight sight
	// untouchable is why the Node is neither drained nor deleted; empty if it is,
	// or if that is unknown, for the reason unclear.
	untouchable, unclear string
	// left is what the deletion leaves behind.
	left []string

	decision Decision
}

func newPass(s Snapshot) *pass {
	p := &pass{Snapshot: s, decision: Decision{Status: *s.Machine.Status.DeepCopy()}}
	p.sight = p.look()
	p.untouchable, p.unclear = p.touch()
	return p
}

func (p *pass) deleting() bool { return p.Machine.DeletionTimestamp != nil }

func (p *pass) held() bool { return slices.Contains(p.Machine.Finalizers, v1alpha1.MachineFinalizer) }

// tellUnread does nothing, because the Cluster may be paused.
func (p *pass) tellUnread() {
	p.decision.Step = StepUnknown
	message := fmt.Sprintf("%s could not be read, and nothing is done until it can: %s", p.cluster(), p.Cluster.Problem)
	switch {
	case p.deleting():
		p.set(v1alpha1.ConditionDeleting, metav1.ConditionTrue, v1alpha1.ReasonUnknown, message)
	case p.created():
		p.set(v1alpha1.ConditionNodeReady, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, message)
	default:
		p.set(v1alpha1.ConditionCreatable, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, message)
	}
}

func (p *pass) pause() {
	p.decision.Step = StepPaused
	p.set(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused,
		fmt.Sprintf("%s is paused: nothing is done to the Machine until spec.paused of the Cluster is false.", p.cluster()))
}

// observe writes down what is seen of the Machine, whatever happens to it.
func (p *pass) observe() {
	p.decision.Status.ObservedGeneration = p.Machine.Generation
	meta.RemoveStatusCondition(&p.decision.Status.Conditions, v1alpha1.ConditionPaused)
	p.decision.Status.InfrastructureSeen = p.Machine.Status.InfrastructureSeen || owned(p.Infrastructure)
	p.setCreatable()
	p.setHeld(v1alpha1.ConditionDrainable, "pre-drain", preDrainHooks(p.Machine))
	p.setHeld(v1alpha1.ConditionTerminable, "pre-terminate", preTerminateHooks(p.Machine))
	p.setState(v1alpha1.ConditionBootstrapReady, p.bootstrapState())
	p.setState(v1alpha1.ConditionInfrastructureReady, p.infrastructureState())
	p.setState(v1alpha1.ConditionNodeReady, p.sight.state)
}

// setHeld says whether hooks hold the Machine at a point of its life.
func (p *pass) setHeld(condition, point string, hooks []string) {
	if len(hooks) == 0 {
		p.set(condition, metav1.ConditionTrue, v1alpha1.ReasonNoHooks, fmt.Sprintf("There are no %s hooks.", point))
		return
	}
	p.set(condition, metav1.ConditionFalse, v1alpha1.ReasonHookPresent, heldBy(point, hooks))
}

func (p *pass) setState(condition string, s state) { p.set(condition, s.status(), s.reason, s.message) }

// set writes a condition. Its transition time changes only if its status is
// another than before the decision.
func (p *pass) set(condition string, status metav1.ConditionStatus, reason, message string) {
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

// now is the time as the API stores it.
func (p *pass) now() metav1.Time { return metav1.NewTime(p.Now.UTC()).Rfc3339Copy() }

// before is the reason that a condition had before this decision; empty for none.
func (p *pass) before(condition string) string {
	if c := meta.FindStatusCondition(p.Machine.Status.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

// cluster names the Machine's Cluster.
func (p *pass) cluster() string {
	return fmt.Sprintf("Cluster %s/%s", p.Machine.Namespace, p.Machine.Spec.ClusterName)
}
