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

type pod struct {
	drainplan.Subject
	object     *corev1.Pod
	evacuation *v1alpha1.Evacuation
	treatment  *drainrule.Treatment
	// staying is set if a maintenance in place drains the node.
	staying staying.Pod
	// givenUp is true if the pod is terminating and its node can no longer confirm that it stopped.
	givenUp bool
	// counted is true if a maintenance waits for the pod, wanted if one that is not paused does.
	counted, wanted bool
	// asked is true if evacuation carries our instigator finalizer.
	asked        bool
	request      *lifecyclev1alpha1.EvictionRequest
	requestState evictionrequest.RequestState
	eviction     *lifecyclev1alpha1.Eviction
	mechanism    evictionrequest.Mechanism
	// unmirrored is true for a static pod without mirror pod; object stands in for it.
	unmirrored bool
	// entry is the first entry of the ruling plan that selects a due pod.
	entry int
}

var (
	ordinary    = drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorDrain}
	unremovable = drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorSkip}
)

// unclear reports whether the treatment is unknown, so that the pod waits and keeps its requests.
func (p *pod) unclear() bool { return p.treatment.Cause != "" }

func (p *pod) evacuable() bool {
	return !p.unmirrored && (p.treatment.Behavior == v1alpha1.DrainBehaviorDrain || p.unclear())
}

func ours(evacuation *v1alpha1.Evacuation) bool {
	return evacuation != nil && slices.Contains(evacuation.Finalizers, v1alpha1.NodeMaintenanceInstigator)
}

func (r *reader) readPods(n *node) {
	all := r.Pods[n.name()]
	n.pods = make([]pod, 0, len(all))
	rules := r.Rules.ForNode(n.object.Labels)
	for _, one := range all {
		p := pod{
			Subject: drainplan.SubjectOf(one.Object), object: one.Object, evacuation: one.Evacuation, asked: ours(one.Evacuation),
			request: one.Request, requestState: one.requestState(), eviction: one.Eviction,
		}
		if podclass.Terminal(one.Object) {
			if p.asked || p.requestState == evictionrequest.Asked {
				n.finished = append(n.finished, one)
			}
			continue
		}
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
		for i := range n.pods {
			one.count(i, &n.pods[i])
		}
	}
}

// count counts a pod for the maintenance. It does not wait for pods that cannot be removed,
// nor for those below its drainDepth or that it leaves on the node, even if another maintenance
// removes them. If a Machine goes with the node, it does not wait for pods that the node can no
// longer confirm as stopped.
func (s *selection) count(i int, p *pod) {
	m := s.maintenance
	if p.treatment.Behavior == v1alpha1.DrainBehaviorSkip || p.Depth() > m.depth || m.keeps(p) || m.ofMachine && p.givenUp {
		s.retained++
		return
	}
	if p.isLeaving() {
		s.evacuating++
	} else {
		s.pending++
	}
	s.counts[i], p.counted, p.wanted = true, true, p.wanted || !m.paused
}

// treatment returns how the drain treats a pod. DaemonSet and static pods need an evacuator that
// keeps them from coming back.
func (r *reader) treatment(n *node, p *pod, rules drainrule.Rules) *drainrule.Treatment {
	removable := true
	switch p.Type() {
	case v1alpha1.PodTypeDaemonSet:
		removable = r.Runners.DaemonSets || hasThirdParty(p.object)
	case v1alpha1.PodTypeStatic:
		// A pod that the agent does not report may be reported in a moment.
		reported, _ := n.agentReport(p.object)
		removable = n.agent != nil && reported.State != v1alpha1.StaticPodUnmanageable || hasThirdParty(p.object)
	}
	if !removable {
		return &unremovable
	}
	answer := rules.Ask(p.object, r.Facts)
	if answer.Reason == "" && answer.Cause == "" {
		return &ordinary
	}
	own := answer // Only this one is on the heap.
	return &own
}

// hasThirdParty reports whether the pod registered a foreign evacuator.
func hasThirdParty(object *corev1.Pod) bool {
	evacuators, _ := podclass.Evacuators(object)
	return slices.ContainsFunc(evacuators, func(e v1alpha1.Evacuator) bool {
		return !slices.Contains(builtIn, e.EvacuatorClass)
	})
}

var builtIn = []string{v1alpha1.DeploymentEvacuatorClass, v1alpha1.DaemonSetEvacuatorClass, v1alpha1.KubeletEvacuatorClass}

// readStaying decides which of the evictable pods may stay on a node.
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

type budgets struct {
	all      map[string][]*policyv1.PodDisruptionBudget
	compiled map[string]budget.Compiled
}

func (b budgets) in(namespace string) budget.Compiled {
	compiled, found := b.compiled[namespace]
	if !found {
		compiled = budget.Compile(b.all[namespace])
		b.compiled[namespace] = compiled
	}
	return compiled
}

func (b budgets) Count(namespace string) int { return len(b.all[namespace]) }

func (b budgets) Applying(object *corev1.Pod) []*policyv1.PodDisruptionBudget {
	return b.in(object.Namespace).Applying(object)
}
