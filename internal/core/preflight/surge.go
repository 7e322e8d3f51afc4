package preflight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

// surge replaces a pod first, if its Deployment can. It reports whether the pod waits for room.
func (r *run) surge(p *pod) (waits bool) {
	if surge.Detached(p.object) {
		p.action, p.why, p.replaced = ActionSurge, "its Deployment has detached it to replace it", true
		if blocker.Unplaced(p.evacuation) != nil {
			p.state = held
		}
		return p.state == held
	}
	deployment := r.owners.deploymentOf(p.object)
	if why := r.owners.cannotSurge(deployment); why != "" {
		p.why = "its Deployment cannot surge: " + why
		return false
	}
	next := r.replace(p)
	p.action, p.why = ActionSurge, fmt.Sprintf("Deployment %s replaces it before it leaves", deployment.Name)
	p.replaced, p.replacement = true, next
	r.make(next)
	r.place(next)
	if next.node == "" && !next.unknown {
		r.await(p)
	}
	return p.state == held
}

// await blocks a pod until its replacement fits, and reports that on its Evacuation. The progress
// deadline is not awaited.
func (r *run) await(p *pod) {
	p.state, p.replacement.awaited = held, true
	p.evacuation = p.evacuation.DeepCopy()
	meta.SetStatusCondition(&p.evacuation.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReplacementUnschedulable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnschedulable,
		Message: p.replacement.why, LastTransitionTime: metav1.NewTime(r.world.Now),
	})
	r.touch(p)
}

// goOn has a pod leave that has waited for its replacement, which fits now.
func (r *run) goOn(p *pod) {
	p.replacement.awaited = false
	if p.state != held {
		return
	}
	p.state, p.evacuation = 0, turnOver(p.evacuation)
	r.touch(p)
	r.takeTurns(p)
}
