package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// infrastructureStep is phase 8 of the deletion-process page.
var infrastructureStep = step{
	name:  StepDeleteInfrastructure,
	title: func(p *planner) string { return "Deleting " + p.infrastructureName() },
	look:  (*planner).lookInfrastructure,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.InfrastructureDeletionStartTime },
}

func (p *planner) lookInfrastructure() verdict {
	if p.terminated() {
		return verdict{}
	}
	return p.remove(p.infrastructureName(), p.Infrastructure, func(d *Decision) { d.DeleteInfrastructure = true })
}

// bootstrapStep is phase 9 of the deletion-process page.
var bootstrapStep = step{
	name:  StepDeleteBootstrap,
	title: func(p *planner) string { return "Deleting " + p.bootstrapName() },
	look:  (*planner).lookBootstrap,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.BootstrapDeletionStartTime },
}

func (p *planner) lookBootstrap() verdict {
	if p.Bootstrap == nil || p.began().NodeDeletionStartTime != nil {
		return verdict{}
	}
	return p.remove(p.bootstrapName(), *p.Bootstrap, func(d *Decision) { d.DeleteBootstrap = true })
}

// remove deletes an object of the Machine and waits until it is gone, even if no owner controls it.
func (p *planner) remove(name string, r Reading[External], del func(*Decision)) verdict {
	switch e := r.Object; {
	case r.Problem != "":
		return verdict{outcome: stuck, message: external(name, r).message}
	case e == nil:
		return verdict{}
	case e.isForeign():
		p.left = append(p.left, external(name, r).message)
		return verdict{outcome: skipped}
	case e.Deleting:
		return verdict{outcome: waits}
	default:
		return verdict{outcome: waits, act: del}
	}
}

// nodeStep is phase 10 of the deletion-process page. Its timeout starts with the step.
var nodeStep = step{
	name:   StepDeleteNode,
	title:  func(p *planner) string { return "Deleting " + p.nodeName() },
	look:   (*planner).lookNode,
	report: (*planner).reportNode,
	began:  func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.NodeDeletionStartTime },
	limit:  nodeLimit,
}

func nodeLimit(m *v1alpha1.Machine) time.Duration {
	if m.Spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		return v1alpha1.DefaultNodeDeletionTimeoutSeconds * time.Second
	}
	return seconds(m.Spec.Deletion.NodeDeletionTimeoutSeconds)
}

func (p *planner) lookNode() verdict {
	p.decision.NodeMissing = p.isAbsent()
	problem := cmp.Or(p.unclear, p.node.problem())
	switch {
	case p.untouchable != "":
		return verdict{outcome: skipped, message: p.untouchable}
	case p.node.missing():
		return verdict{}
	case p.isNodeTried(problem) && p.expired(p.began().NodeDeletionStartTime, nodeLimit(p.Machine)):
		return verdict{outcome: timedOut, message: cmp.Or(problem, "It still exists.")}
	case problem != "":
		return verdict{outcome: stuck, message: problem}
	case p.node.node.DeletionTimestamp != nil:
		return verdict{outcome: waits}
	default:
		return verdict{outcome: waits, act: func(d *Decision) { d.DeleteNode = p.node.node }}
	}
}

// isNodeTried reports whether the deletion of the Node was tried, which happens once however late.
func (p *planner) isNodeTried(problem string) bool {
	return problem != "" || p.Failure != "" || p.node.node.DeletionTimestamp != nil
}

func (p *planner) reportNode(v verdict) {
	switch {
	case v.outcome == timedOut:
		message := fmt.Sprintf("Gave up deleting %s after %s (nodeDeletionTimeoutSeconds): %s",
			p.nodeName(), nodeLimit(p.Machine), v.message)
		p.left = append(p.left, message)
		p.set(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonTimedOut, message)
	case v.outcome == skipped && p.node.node != nil:
		message := fmt.Sprintf("%s is not deleted: %s", p.nodeName(), v.message)
		p.left = append(p.left, message)
		p.set(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonSkipped, message)
	}
}
