package preflight

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// evacuate lets evacuators act and then evicts the pod, as the controller does.
func (r *run) evacuate(p *pod) {
	if p.state == ending {
		return
	}
	p.action = ActionEvict
	if evictionrequest.Requestable(p.object) {
		p.action, p.why = ActionEvacuator, fmt.Sprintf("responders of its own (%s) are asked first, if EvictionRequests are answered; the pod is evicted if they do not move it", event.Responders(p.object))
	}
	r.takeTurns(p)
}

func (r *run) takeTurns(p *pod) {
	for range v1alpha1.MaxEvacuators + 1 {
		d := evacuation.Decide(evacuation.Snapshot{Now: r.world.Now, Evacuation: p.evacuation, Pod: p.object})
		if d.Status != nil {
			told := *p.evacuation
			told.Status = *d.Status
			p.evacuation = &told
		}
		switch d.State {
		case evacuation.StateTerminating, evacuation.StateDone:
			return
		case evacuation.StateEvicting:
			r.evict(p)
			return
		case evacuation.StateEvacuating:
			if r.takeTurn(p, p.evacuation.Status.ActiveEvacuatorClass) {
				return
			}
			p.evacuation = turnOver(p.evacuation)
		default:
			p.state = held
			return
		}
	}
	p.state = held
}

// turnOver returns the Evacuation when the active evacuator says that it has done what it can.
func turnOver(e *v1alpha1.Evacuation) *v1alpha1.Evacuation {
	over := *e
	over.Status.ActiveEvacuatorCompleted = true
	return &over
}

// takeTurn simulates an evacuator and reports whether the pod left. Pods of foreign ones are
// evicted.
func (r *run) takeTurn(p *pod, class string) bool {
	switch class {
	case v1alpha1.DeploymentEvacuatorClass:
		return r.surge(p)
	case v1alpha1.DaemonSetEvacuatorClass:
		p.action, p.why = ActionDaemonSet, "its DaemonSet makes no other one on the node until the maintenance is complete"
		r.leave(p)
		return true
	case v1alpha1.KubeletEvacuatorClass:
		p.action, p.why = ActionStatic, "the agent of the node brings it back when the maintenance is complete"
		if agent, known := r.world.Runners.Agents[p.object.Spec.NodeName]; !known || !agent.SilentSince.IsZero() {
			p.state = held
		} else {
			r.leave(p)
		}
		return true
	default:
		p.action = ActionEvacuator
		p.why = fmt.Sprintf("evacuator %s is asked first; the pod is evicted if that does not move it", class)
		return false
	}
}

// evict calls the eviction API. A waiting pod is retried when its budget opens.
func (r *run) evict(p *pod) {
	for _, b := range p.budgets {
		b.asked++
	}
	switch b, hold := r.locked(p); {
	case b != nil:
		p.state, p.refusal = held, evacuation.Barred(b, hold)
	case p.object.Status.Phase == corev1.PodPending, len(p.budgets) == 0:
		r.leave(p)
	case len(p.budgets) > 1:
		p.state, p.refusal = held, severalBudgets()
	default:
		r.admitted(p, p.budgets[0].admit(p.object))
	}
}

func (r *run) locked(p *pod) (*policyv1.PodDisruptionBudget, budget.Hold) {
	for _, b := range p.budgets {
		if hold, locked := budget.LockOf(b.budget, r.world.Now, r.world.LongestLock); locked {
			return b.budget, hold
		}
	}
	return nil, budget.Hold{}
}

// admitted does what the eviction API has said of a pod under one budget.
func (r *run) admitted(p *pod, says verdict) {
	b := p.budgets[0]
	switch says {
	case refused:
		p.state, p.refusal = held, b.refusal()
		b.wait(p)
		return
	case let:
		b.let++
	}
	p.chance = says != free
	r.leave(p)
}

func (r *run) open() {
	for len(r.opened) > 0 {
		last := len(r.opened) - 1
		b := r.opened[last]
		r.opened = r.opened[:last]
		for p, says := b.next(); p != nil; p, says = b.next() {
			r.admitted(p, says)
		}
	}
}

// expire deletes a pod past its budgets, because a deadline has come.
func (r *run) expire(object *corev1.Pod) {
	p := r.pod(object)
	if p.state == gone || p.state == ending {
		return
	}
	for _, b := range p.budgets {
		b.forget(p)
	}
	p.action, p.why = ActionDelete, "it is deleted past its budgets, as the deadline comes"
	p.wave = max(p.wave, r.wave)
	r.leave(p)
	r.open()
}

func (r *run) leave(p *pod) {
	if podclass.Ready(p.object) && p.object.DeletionTimestamp == nil {
		for _, b := range p.budgets {
			b.count(-1, 0)
		}
	}
	r.end(p)
	if !p.replaced {
		r.succeed(p)
	}
}

// end removes a terminating pod unless its node is silent or a finalizer keeps it.
func (r *run) end(p *pod) {
	r.touch(p)
	if r.neverEnds(p.object) {
		p.state, p.shown = ending, r.terminating(p.object)
		return
	}
	p.state = gone
	r.placer.Remove(p.object)
	for _, b := range p.budgets {
		b.count(0, -1)
	}
}

func (r *run) terminating(object *corev1.Pod) *corev1.Pod {
	shown := *object
	if shown.DeletionTimestamp == nil {
		now := metav1.NewTime(r.world.Now)
		shown.DeletionTimestamp = &now
	}
	if keptByFinalizer(object) {
		// Its containers end, which is when the finalizer shows.
		shown.DeletionGracePeriodSeconds = new(int64)
	}
	return &shown
}

// neverEnds reports whether a terminating pod stays, judged once for each node.
func (r *run) neverEnds(object *corev1.Pod) bool {
	switch {
	case keptByFinalizer(object):
		return true
	case object.DeletionTimestamp != nil:
		return r.stuck(object)
	}
	stuck, known := r.silent[object.Spec.NodeName]
	if !known {
		stuck = r.stuck(&corev1.Pod{Spec: corev1.PodSpec{NodeName: object.Spec.NodeName}})
		r.silent[object.Spec.NodeName] = stuck
	}
	return stuck
}

// stuck reports whether something holds a terminating pod that is no finalizer.
func (r *run) stuck(object *corev1.Pod) bool {
	tracked := *r.terminating(object)
	tracked.Finalizers = nil
	facts := blocker.Facts{Now: r.world.Now, Pod: &tracked, Node: r.node(object.Spec.NodeName)}
	_, stuck := blocker.Of(&facts)
	return stuck
}

// keptByFinalizer reports whether a foreign finalizer keeps a pod. That of Jobs goes automatically.
func keptByFinalizer(object *corev1.Pod) bool {
	return slices.ContainsFunc(object.Finalizers, func(finalizer string) bool { return finalizer != batchv1.JobTrackingFinalizer })
}

// endTerminating has those pods be gone that terminate already, as far as they will.
func (r *run) endTerminating() {
	for _, node := range slices.Sorted(maps.Keys(r.world.Pods)) {
		for _, one := range r.world.Pods[node] {
			if one.Object.DeletionTimestamp == nil || podclass.Terminal(one.Object) {
				continue
			}
			p := r.pod(one.Object)
			p.evacuation, p.action, p.wave = one.Evacuation, ActionAlreadyLeaving, 0
			// Only a StatefulSet waits for the end of a pod before it makes another one.
			p.replaced = !ofStatefulSet(p.object)
			r.end(p)
			if !p.replaced {
				r.succeed(p)
			}
		}
	}
	r.tidy()
}
