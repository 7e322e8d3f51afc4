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
	title: func(p *pass) string { return "Deleting " + p.infrastructureName() },
	look:  (*pass).lookInfrastructure,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.InfrastructureDeletionStartTime },
}

func (p *pass) lookInfrastructure() verdict {
	if p.terminated() {
		return verdict{}
	}
	return p.remove(p.infrastructureName(), p.Infrastructure, func(d *Decision) { d.DeleteInfrastructure = true })
}

// bootstrapStep is phase 9 of the deletion-process page.
var bootstrapStep = step{
	name:  StepDeleteBootstrap,
	title: func(p *pass) string { return "Deleting " + p.bootstrapName() },
	look:  (*pass).lookBootstrap,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.BootstrapDeletionStartTime },
}

func (p *pass) lookBootstrap() verdict {
	if p.Bootstrap == nil || p.began().NodeDeletionStartTime != nil {
		return verdict{}
	}
	return p.remove(p.bootstrapName(), *p.Bootstrap, func(d *Decision) { d.DeleteBootstrap = true })
}

// remove deletes an object of the Machine and waits until it is gone. One that
// nobody controls goes, too: the Machine names it.
func (p *pass) remove(name string, r Reading[External], del func(*Decision)) verdict {
	switch e := r.Object; {
	case r.Problem != "":
		return verdict{outcome: stuck, message: external(name, r).message}
	case e == nil:
		return verdict{}
	case e.foreign():
		p.left = append(p.left, external(name, r).message)
		return verdict{outcome: skipped}
	case e.Deleting:
		return verdict{outcome: waits}
	default:
		return verdict{outcome: waits, act: del}
	}
}

// nodeStep is phase 10 of the deletion-process page. Its clock is its own: that
// of the whole deletion would be over before it began.
var nodeStep = step{
	name:  StepDeleteNode,
	title: func(p *pass) string { return "Deleting " + p.nodeName() },
	look:  (*pass).lookNode,
	tell:  (*pass).tellNode,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.NodeDeletionStartTime },
	limit: nodeLimit,
}

func nodeLimit(m *v1alpha1.Machine) time.Duration {
	if m.Spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		return v1alpha1.DefaultNodeDeletionTimeoutSeconds * time.Second
	}
	return seconds(m.Spec.Deletion.NodeDeletionTimeoutSeconds)
}

func (p *pass) lookNode() verdict {
	p.decision.NodeMissing = p.absent()
	problem := cmp.Or(p.unclear, p.sight.problem())
	switch {
	case p.untouchable != "":
		return verdict{outcome: skipped, message: p.untouchable}
	case p.sight.missing():
		return verdict{}
	case p.nodeTried(problem) && p.expired(p.began().NodeDeletionStartTime, nodeLimit(p.Machine)):
		return verdict{outcome: timedOut, message: cmp.Or(problem, "It is still there.")}
	case problem != "":
		return verdict{outcome: stuck, message: problem}
	case p.sight.node.DeletionTimestamp != nil:
		return verdict{outcome: waits}
	default:
		return verdict{outcome: waits, act: func(d *Decision) { d.DeleteNode = p.sight.node }}
	}
}

// nodeTried tells whether the deletion of the Node was tried. It is once, however
// late: after the beginning was recorded, the manager may have been away.
func (p *pass) nodeTried(problem string) bool {
	return problem != "" || p.Failure != "" || p.sight.node.DeletionTimestamp != nil
}

// tellNode says that the Node is left in the cluster, and why.
func (p *pass) tellNode(v verdict) {
	switch {
	case v.outcome == timedOut:
		message := fmt.Sprintf("Deleting %s was given up after %s (nodeDeletionTimeoutSeconds), so it is left: %s",
			p.nodeName(), nodeLimit(p.Machine), v.message)
		p.left = append(p.left, message)
		p.set(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonTimedOut, message)
	case v.outcome == skipped && p.sight.node != nil:
		message := fmt.Sprintf("%s is left: %s", p.nodeName(), v.message)
		p.left = append(p.left, message)
		p.set(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonSkipped, message)
	}
}
