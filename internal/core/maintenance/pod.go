package maintenance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// subject is a pod of a site in Drain that is not done.
type subject struct {
	drainplan.Subject
	pod        *corev1.Pod
	evacuation *v1alpha1.Evacuation
	// treatment is not changed: it belongs to many pods.
	treatment *drainrule.Treatment
	// staying is not nil if the pod asks to stay and there is an intent in place.
	staying *staying
	// covered is true if the target of the site covers the pod.
	covered bool
}

var (
	// ordinary is the treatment of a pod that nothing is said about, unremovable
	// that of one that nobody can remove.
	ordinary    = drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorDrain}
	unremovable = drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorSkip}
)

// unclear returns true if nobody knows how to treat the pod. It is counted and
// waits, and nothing that was asked for before is taken back.
func (s *subject) unclear() bool { return s.treatment.Cause != "" }

// retained returns true if the pod stays on purpose.
func (s *subject) retained() bool { return s.treatment.Behavior == v1alpha1.DrainBehaviorSkip }

// evacuable returns true if the pod leaves by an Evacuation, or if it may.
func (s *subject) evacuable() bool {
	return s.treatment.Behavior == v1alpha1.DrainBehaviorDrain || s.unclear()
}

// countedBy returns true if an intent waits for the pod. It does not wait for
// pods that nobody removes, nor for those below its drainDepth or that it leaves
// on the node: another intent of the node may be removing these, but that is not
// this one's concern.
func (s *subject) countedBy(i *intent) bool {
	return !s.retained() && s.Depth() <= i.depth && (s.staying == nil || !i.keeps(s))
}

// classify reads the pods of all sites in Drain. Other pods are not looked at.
func (p *pass) classify() {
	for _, s := range p.sites {
		if len(s.drains) == 0 {
			continue
		}
		var pods []*corev1.Pod
		pods, s.known = p.snapshot.Pods[s.node.Name]
		s.pods = make([]subject, 0, len(pods))
		rules := p.snapshot.Rules.ForNode(s.node.Labels)
		inPlace := s.inPlace() != nil
		for _, pod := range pods {
			if podclass.Terminal(pod) {
				continue
			}
			one := subject{Subject: drainplan.SubjectOf(pod), pod: pod, evacuation: p.snapshot.Evacuations[pod.UID]}
			one.treatment = &unremovable
			if p.removable(s, &one) {
				one.treatment = p.ask(rules, pod)
			}
			if inPlace {
				one.staying = p.stayingOf(s, &one)
			}
			s.pods = append(s.pods, one)
		}
	}
}

// ask shares the treatment of the many pods that nothing is said about.
func (p *pass) ask(rules drainrule.Rules, pod *corev1.Pod) *drainrule.Treatment {
	asked := rules.Ask(pod, p.snapshot.Facts)
	if asked.Reason == "" && asked.Cause == "" {
		return &ordinary
	}
	own := asked
	return &own
}

// removable returns true if somebody can remove the pod for good. The eviction
// API can do that for ordinary pods; DaemonSet and static pods need an evacuator
// that keeps them from coming back.
func (p *pass) removable(s *site, one *subject) bool {
	runners := p.snapshot.Runners
	switch one.Type() {
	case v1alpha1.PodTypeDaemonSet:
		return runners.DaemonSets || hasThirdParty(one.pod)
	case v1alpha1.PodTypeStatic:
		return runners.Agents[s.node.Name] || hasThirdParty(one.pod)
	default:
		return true
	}
}

// hasThirdParty returns true if the pod registered an evacuator that is not one
// of ours; ours count where they run, also without a registration.
func hasThirdParty(pod *corev1.Pod) bool {
	evacuators, _ := podclass.Evacuators(pod)
	return slices.ContainsFunc(evacuators, func(e v1alpha1.Evacuator) bool {
		return !slices.Contains(builtIn, e.EvacuatorClass)
	})
}

// builtIn are the classes of our own evacuators.
var builtIn = []string{v1alpha1.DeploymentEvacuatorClass, v1alpha1.DaemonSetEvacuatorClass, v1alpha1.KubeletEvacuatorClass}
