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
	name:  StepDrain,
	title: func(p *pass) string { return "Draining " + p.nodeName() },
	look:  (*pass).lookDrain,
	tell:  (*pass).tellDrain,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.NodeDrainStartTime },
	limit: drainLimit,
}

func drainLimit(m *v1alpha1.Machine) time.Duration {
	return seconds(m.Spec.Deletion.NodeDrainTimeoutSeconds)
}

func (p *pass) lookDrain() verdict {
	if p.drained() {
		return verdict{}
	}
	p.decision.NodeMissing = p.absent()
	if why := p.undrained(); why != "" {
		return verdict{outcome: skipped, message: "The Node is not drained: " + why}
	}
	began := p.began().NodeDrainStartTime
	over := p.expired(began, drainLimit(p.Machine))
	if problem := cmp.Or(p.unclear, p.sight.problem(), p.DrainProblem); problem != "" {
		if over {
			return verdict{outcome: timedOut, message: problem}
		}
		return verdict{outcome: stuck, message: p.advised(problem), failed: true}
	}
	d := p.pods()
	switch {
	case began != nil && d.Done && p.sight.node.Spec.Unschedulable:
		return verdict{outcome: done, message: p.nodeName() + " is drained."}
	case over:
		return verdict{outcome: timedOut, message: d.Message}
	}
	return verdict{
		outcome: waits, message: cmp.Or(d.Message, "No pod has to leave, but the Node has to be cordoned."),
		failed: d.Failed, wake: d.RequeueAfter,
		act: func(decision *Decision) { decision.Drain = &d },
	}
}

// undrained is why the Node is not drained although nothing went wrong; empty if
// it is.
func (p *pass) undrained() string {
	switch {
	case p.untouchable != "":
		return p.untouchable + p.uncounted()
	case p.excluded(v1alpha1.ExcludeNodeDrainingAnnotation):
		return fmt.Sprintf("Annotation %s is set.", v1alpha1.ExcludeNodeDrainingAnnotation)
	case p.leftControlPlane():
		return "The KubeadmControlPlane has taken it out of the control plane: its pre-terminate hook is gone."
	case p.instance() != "":
		return p.instance()
	case p.sight.missing():
		return p.sight.message
	default:
		return ""
	}
}

// instance is why nothing runs on the Node any more, so that nobody there could
// end a pod or let go of a volume; empty if something may. An instance that
// somebody else deletes is drained as long as its kubelet answers.
func (p *pass) instance() string {
	switch e := p.Infrastructure.Object; {
	case !p.Machine.Status.InfrastructureSeen:
		return "" // It may never have been there, and the Node be somebody else's work.
	case p.Infrastructure.missing():
		return p.infrastructureName() + " is gone, and with it all that ran there."
	case e != nil && e.Deleting && !e.foreign() && p.sight.node != nil && podclass.Unreachable(p.sight.node):
		return fmt.Sprintf("%s is being deleted, and %s is unreachable.", p.infrastructureName(), p.nodeName())
	default:
		return ""
	}
}

// uncounted names the pre-drain hooks that hold nothing.
func (p *pass) uncounted() string {
	hooks := preDrainHooks(p.Machine)
	if len(hooks) == 0 {
		return ""
	}
	return " Pre-drain hooks therefore hold nothing: " + nodedrain.List(hooks, namedHooks)
}

// drained tells whether the drain was over before: a step behind it has begun.
func (p *pass) drained() bool {
	return p.began().WaitForNodeVolumeDetachStartTime != nil || p.detached()
}

// pods is what the drain decides.
func (p *pass) pods() nodedrain.Decision {
	s := p.Drain
	s.Node = p.sight.node
	if s.Now.IsZero() {
		s.Now, s.ClockSkewed = p.Now, p.ClockSkewed
	}
	return nodedrain.Decide(s)
}

// tellDrain writes the two conditions of the drain. The one of the hooks document
// is there after the first attempt, and it is true as well if there is nothing to
// attempt: implementers of pre-terminate hooks wait for it. A drain that was given
// up is no success, so it is false then.
func (p *pass) tellDrain(v verdict) {
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
		p.tellDraining(v)
		p.decision.DrainStarts = begins && v.outcome == waits
	}
}

// tellDraining says what the drain waits for.
func (p *pass) tellDraining(v verdict) {
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

// givenUp says that the limit has ended the drain, and what was left.
func (p *pass) givenUp(rest string) string {
	return fmt.Sprintf("The drain of %s was given up after %s (nodeDrainTimeoutSeconds). What is left goes with the Machine, and nobody waits for its volumes. %s",
		p.nodeName(), drainLimit(p.Machine), rest)
}

// cordon makes the Node unschedulable from the beginning of its drain until it is
// deleted: whatever came there later would go with it.
func (p *pass) cordon() {
	node := p.sight.node
	ours := p.began().NodeDrainStartTime != nil && p.untouchable == "" && p.unclear == ""
	if ours && node != nil && !node.Spec.Unschedulable && p.decision.DeleteNode == nil {
		p.decision.Cordon = node
	}
}

// nodeName names the Node, as far as that is known.
func (p *pass) nodeName() string {
	switch {
	case p.sight.node != nil:
		return "Node " + p.sight.node.Name
	case p.Machine.Status.NodeRef != nil:
		return "Node " + p.Machine.Status.NodeRef.Name
	default:
		return "the Node"
	}
}
