package maintenance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// subject is a pod of a site in Drain that is not done.
type subject struct {
	drainplan.Subject
	pod        *corev1.Pod
	evacuation *v1alpha1.Evacuation
	behavior   v1alpha1.DrainBehavior
	// covered is true if the target of the site covers the pod.
	covered bool
}

// countedBy returns true if an intent waits for the pod. It does not wait for
// pods that nobody removes, nor for those below its drainDepth: another intent
// of the node may be removing these, but that is not this one's concern.
func (s *subject) countedBy(i *intent) bool {
	return s.behavior != v1alpha1.DrainBehaviorSkip && s.Depth() <= i.depth
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
		for _, pod := range pods {
			if !podclass.Terminal(pod) {
				s.pods = append(s.pods, p.read(s, pod))
			}
		}
	}
}

func (p *pass) read(s *site, pod *corev1.Pod) subject {
	one := subject{Subject: drainplan.SubjectOf(pod), pod: pod, evacuation: p.snapshot.Evacuations[pod.UID]}
	if p.removable(s, &one) {
		one.behavior, _ = podclass.DrainLabel(pod)
	} else {
		one.behavior = v1alpha1.DrainBehaviorSkip
	}
	return one
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
