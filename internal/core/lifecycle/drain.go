package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// drainStep is phases 3 and 4 of the deletion-process page.
var drainStep = step{
	name:   StepDrain,
	title:  func(p *planner) string { return "Draining " + p.nodeName() },
	look:   (*planner).lookDrain,
	report: (*planner).reportDrain,
	began:  func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.NodeDrainStartTime },
	limit:  drainLimit,
}

func drainLimit(m *v1alpha1.Machine) time.Duration {
	return seconds(m.Spec.Deletion.NodeDrainTimeoutSeconds)
}

func (p *planner) lookDrain() verdict {
	if p.isDrained() {
		return verdict{}
	}
	p.decision.NodeMissing = p.isAbsent()
	if why := p.skipDrain(); why != "" {
		return verdict{outcome: skipped, message: "The Node is not drained: " + why}
	}
	began := p.began().NodeDrainStartTime
	over := p.expired(began, drainLimit(p.Machine))
	if problem := cmp.Or(p.unclear, p.node.problem(), p.DrainProblem); problem != "" {
		if over {
			return verdict{outcome: timedOut, message: problem}
		}
		return verdict{outcome: stuck, message: p.advised(problem), failed: true}
	}
	d := p.pods()
	switch {
	case began != nil && d.Done && p.node.node.Spec.Unschedulable:
		return verdict{outcome: done, message: p.nodeName() + " is drained."}
	case over:
		return verdict{outcome: timedOut, message: d.Message}
	}
	return verdict{
		outcome: waits, message: cmp.Or(d.Message, "No pods to evict. Waiting for the Node to be cordoned."),
		failed: d.Failed, wake: d.RequeueAfter,
		act: func(decision *Decision) { decision.Drain = &d },
	}
}

// skipDrain returns the reason why the Node is not drained, although nothing failed.
func (p *planner) skipDrain() string {
	switch {
	case p.untouchable != "":
		return p.untouchable + p.ignoredHooks()
	case p.excluded(v1alpha1.ExcludeNodeDrainingAnnotation):
		return fmt.Sprintf("Annotation %s is set.", v1alpha1.ExcludeNodeDrainingAnnotation)
	case p.leftControlPlane():
		return "The KubeadmControlPlane has removed its pre-terminate hook, so it has left the control plane."
	case p.instance() != "":
		return p.instance()
	case p.node.missing():
		return p.node.message
	default:
		return ""
	}
}

// instance returns why nothing runs on the Node any more; empty if something may.
func (p *planner) instance() string {
	switch e := p.Infrastructure.Object; {
	case !p.Machine.Status.InfrastructureSeen:
		return "" // It may never have been there, and the Node be somebody else's work.
	case p.Infrastructure.missing():
		return p.infrastructureName() + " no longer exists."
	case e != nil && e.Deleting && !e.isForeign() && p.node.node != nil && podclass.Unreachable(p.node.node):
		return fmt.Sprintf("%s is being deleted, and %s is unreachable.", p.infrastructureName(), p.nodeName())
	default:
		return ""
	}
}

func (p *planner) ignoredHooks() string {
	hooks := preDrainHooks(p.Machine)
	if len(hooks) == 0 {
		return ""
	}
	return " Pre-drain hooks therefore have no effect: " + nodedrain.List(hooks, namedHooks)
}

// isDrained reports whether the drain is over because a later step has begun.
func (p *planner) isDrained() bool {
	return p.began().WaitForNodeVolumeDetachStartTime != nil || p.isDetached()
}

func (p *planner) pods() nodedrain.Decision {
	s := p.Drain
	s.Node = p.node.node
	if s.Now.IsZero() {
		s.Now, s.ClockSkewed = p.Now, p.ClockSkewed
	}
	return nodedrain.Decide(s)
}

// reportDrain writes the two conditions of the drain. DrainingSucceeded, which pre-terminate hooks
// wait for, is set even if nothing is drained, and false if the drain timed out.
func (p *planner) reportDrain(v verdict) {
	begins := p.before(v1alpha1.ConditionDrainingSucceeded) != v1alpha1.ReasonDraining
	switch v.outcome {
	case done:
		p.set(v1alpha1.ConditionDrainingSucceeded, metav1.ConditionTrue, v1alpha1.ReasonDrained, v.message)
		p.set(v1alpha1.ConditionMachineDrained, metav1.ConditionTrue, v1alpha1.ReasonDrained, v.message)
		p.decision.DrainStarts, p.decision.DrainEnds = begins, true
	case skipped:
		p.set(v1alpha1.ConditionDrainingSucceeded, metav1.ConditionFalse, v1alpha1.ReasonSkipped, v.message)
		p.set(v1alpha1.ConditionMachineDrained, metav1.ConditionTrue, v1alpha1.ReasonSkipped, v.message)
	case timedOut:
		message := p.givenUp(v.message)
		p.set(v1alpha1.ConditionDrainingSucceeded, metav1.ConditionFalse, v1alpha1.ReasonTimedOut, message)
		p.set(v1alpha1.ConditionMachineDrained, metav1.ConditionFalse, v1alpha1.ReasonTimedOut, message)
	default:
		p.reportDraining(v)
		p.decision.DrainStarts = begins && v.outcome == waits
	}
}

func (p *planner) reportDraining(v verdict) {
	if v.outcome == stuck {
		p.set(v1alpha1.ConditionDrainingSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonUnknown, v.message)
	} else {
		p.set(v1alpha1.ConditionDrainingSucceeded, metav1.ConditionFalse, v1alpha1.ReasonDraining, v.message)
	}
	reason := v1alpha1.ReasonDraining
	if v.failed {
		reason = v1alpha1.ReasonDrainError
	}
	p.set(v1alpha1.ConditionMachineDrained, metav1.ConditionFalse, reason, v.message)
}

func (p *planner) givenUp(rest string) string {
	return fmt.Sprintf("Gave up draining %s after %s (nodeDrainTimeoutSeconds). Remaining pods are deleted with the Machine, without waiting for their volumes. %s",
		p.nodeName(), drainLimit(p.Machine), rest)
}

// cordon keeps the Node unschedulable from the start of its drain.
func (p *planner) cordon() {
	node := p.node.node
	ours := p.began().NodeDrainStartTime != nil && p.untouchable == "" && p.unclear == ""
	if ours && node != nil && !node.Spec.Unschedulable && p.decision.DeleteNode == nil {
		p.decision.Cordon = node
	}
}

func (p *planner) nodeName() string {
	switch {
	case p.node.node != nil:
		return "Node " + p.node.node.Name
	case p.Machine.Status.NodeRef != nil:
		return "Node " + p.Machine.Status.NodeRef.Name
	default:
		return "the Node"
	}
}
