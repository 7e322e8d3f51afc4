package maintenance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance/drainrecord"
	"ebbtide.dev/ebbtide/internal/core/maintenance/staying"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// pod is an unfinished pod of a node in Drain.
type pod struct {
	drainplan.Subject
	object     *corev1.Pod
	evacuation *v1alpha1.Evacuation
	// treatment is not changed: it belongs to many pods.
	treatment *drainrule.Treatment
	// staying is whether the pod may stay for a maintenance in place, if there is one.
	staying staying.Pod
	// givenUp is true of a terminating pod that its node can no longer confirm as stopped.
	givenUp bool
	// counted is true if some maintenance in Drain waits for the pod.
	counted bool
	// wanted is true if one of these may have the pod asked to leave.
	wanted bool
	// asked is true if it has an Evacuation with our instigator finalizer.
	asked bool
	// request, standing and eviction are what it was asked by an EvictionRequest of ours, and
	// what has come of that; way is by what it is to leave.
	request   *lifecyclev1alpha1.EvictionRequest
	standing  evictionrequest.RequestState
	eviction  *lifecyclev1alpha1.Eviction
	mechanism evictionrequest.Mechanism
	// unmirrored is true of a static pod that only its agent knows of; the object stands
	// in for its mirror pod.
	unmirrored bool
}

var (
	// ordinary is the treatment of a pod that nothing is said about, unremovable
	// that of one that nobody can remove.
	ordinary    = drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorDrain}
	unremovable = drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorSkip}
)

// unclear returns true if nobody knows how to treat the pod. It is counted and
// waits, and nothing that was asked for before is taken back.
func (p *pod) unclear() bool { return p.treatment.Cause != "" }

// retained returns true if the pod stays on purpose.
func (p *pod) retained() bool { return p.treatment.Behavior == v1alpha1.DrainBehaviorSkip }

// evacuable returns true if the pod leaves by an Evacuation, or if it may.
func (p *pod) evacuable() bool {
	return !p.unmirrored && (p.treatment.Behavior == v1alpha1.DrainBehaviorDrain || p.unclear())
}

// ours returns true if the Evacuation carries our instigator finalizer.
func ours(evacuation *v1alpha1.Evacuation) bool {
	return evacuation != nil && slices.Contains(evacuation.Finalizers, v1alpha1.NodeMaintenanceInstigator)
}

// readPods classifies the pods of a node in Drain and counts them for each of its
// maintenances. The pods of other nodes are not looked at.
func (r *reader) readPods(n *node) {
	all := r.Pods[n.name()]
	n.pods = make([]pod, 0, len(all))
	rules := r.Rules.ForNode(n.object.Labels)
	for _, one := range all {
		asked := ours(one.Evacuation)
		if podclass.Terminal(one.Object) {
			if asked || one.standing() == evictionrequest.Asked {
				n.finished = append(n.finished, one)
			}
			continue
		}
		p := pod{Subject: drainplan.SubjectOf(one.Object), object: one.Object, evacuation: one.Evacuation, asked: asked}
		p.request, p.standing, p.eviction = one.Request, one.standing(), one.Eviction
		p.mechanism = r.mechanismOf(&p)
		p.treatment = r.treatment(n, &p, rules)
		at := podclass.GivenUpTime(p.object, n.object)
		p.givenUp = !at.IsZero() && !r.ClockSkewed && !at.After(r.Now)
		n.pods = append(n.pods, p)
	}
	r.readUnmirrored(n)
	if n.inPlace != nil {
		r.readStaying(n)
	}
	for _, one := range n.drains {
		one.counts = make([]bool, len(n.pods))
	}
	for i := range n.pods {
		n.count(i)
	}
}

// count counts the pod at this place for each maintenance in Drain.
func (n *node) count(i int) {
	p := &n.pods[i]
	for _, one := range n.drains {
		one.counts[i] = one.maintenance.counts(p)
		switch {
		case !one.counts[i]:
			one.retained++
			continue
		case p.underWay():
			one.evacuating++
		default:
			one.pending++
		}
		p.counted, p.wanted = true, p.wanted || !one.maintenance.paused
	}
}

// treatment shares the treatment of the many pods that nothing is said about.
func (r *reader) treatment(n *node, p *pod, rules drainrule.Rules) *drainrule.Treatment {
	if !r.removable(n, p) {
		return &unremovable
	}
	asked := rules.Ask(p.object, r.Facts)
	if asked.Reason == "" && asked.Cause == "" {
		return &ordinary
	}
	own := asked
	return &own
}

// removable returns true if somebody can remove the pod for good. The eviction
// API can do that for ordinary pods; DaemonSet and static pods need an evacuator
// that keeps them from coming back.
func (r *reader) removable(n *node, p *pod) bool {
	switch p.Type() {
	case v1alpha1.PodTypeDaemonSet:
		return r.Runners.DaemonSets || hasThirdParty(p.object)
	case v1alpha1.PodTypeStatic:
		return n.takenDown(p.object) || hasThirdParty(p.object)
	default:
		return true
	}
}

// hasThirdParty returns true if the pod registered an evacuator that is not one
// of ours; ours count where they run, also without a registration.
func hasThirdParty(object *corev1.Pod) bool {
	evacuators, _ := podclass.Evacuators(object)
	return slices.ContainsFunc(evacuators, func(e v1alpha1.Evacuator) bool {
		return !slices.Contains(builtIn, e.EvacuatorClass)
	})
}

// builtIn are the classes of our own evacuators.
var builtIn = []string{v1alpha1.DeploymentEvacuatorClass, v1alpha1.DaemonSetEvacuatorClass, v1alpha1.KubeletEvacuatorClass}

// readStaying finds out which pods may stay on a node. Only a pod that would be evicted can
// ask: one that is to complete is waited for, and one that is skipped is nobody's concern.
func (r *reader) readStaying(n *node) {
	var record *v1alpha1.DrainRecord
	if drainrecord.InForce(n.object, n.record) {
		record = n.record
	}
	asking := map[int]*corev1.Pod{}
	for i := range n.pods {
		p := &n.pods[i]
		evicted := p.treatment.Behavior == v1alpha1.DrainBehaviorDrain && !p.unclear()
		if !p.unmirrored && (evicted || p.treatment == &unremovable) {
			p.staying = staying.Ask(p.object, record, r.budgets)
		}
		if p.staying.Stays {
			asking[i] = p.object
		}
	}
	for i, why := range staying.Surplus(asking, record, r.budgets) {
		n.pods[i].staying = staying.Pod{Surplus: why}
	}
}

// budgets are those of a snapshot. They are compiled when they are first asked for.
type budgets struct {
	all      map[string][]*policyv1.PodDisruptionBudget
	compiled map[string]budget.Compiled
}

func newBudgets(all map[string][]*policyv1.PodDisruptionBudget) budgets {
	return budgets{all: all, compiled: map[string]budget.Compiled{}}
}

// in are the budgets of a namespace.
func (b budgets) in(namespace string) budget.Compiled {
	compiled, found := b.compiled[namespace]
	if !found {
		compiled = budget.Compile(b.all[namespace])
		b.compiled[namespace] = compiled
	}
	return compiled
}

// Count is how many budgets a namespace has.
func (b budgets) Count(namespace string) int { return len(b.all[namespace]) }

// Applying are the budgets that protect a pod.
func (b budgets) Applying(object *corev1.Pod) []*policyv1.PodDisruptionBudget {
	return b.in(object.Namespace).Applying(object)
}
