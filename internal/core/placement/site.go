package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// site holds the node requirements of pods, and caches which nodes fulfil them.
type site struct {
	affinity        nodeaffinity.RequiredNodeAffinity
	tolerations     []corev1.Toleration
	toleratesCordon bool
	seen            []bool
	verdicts        []obstacle
}

func (e *Estimate) siteOf(pod *corev1.Pod, key string) *site {
	s := e.sites[key]
	if s == nil {
		s = &site{
			affinity: nodeaffinity.GetRequiredNodeAffinity(pod), tolerations: pod.Spec.Tolerations,
			toleratesCordon: podclass.Tolerates(pod, corev1.TaintNodeUnschedulable),
			seen:            make([]bool, len(e.nodes)), verdicts: make([]obstacle, len(e.nodes)),
		}
		e.sites[key] = s
	}
	return s
}

// allows returns what keeps pods away from a node as long as it is as it is.
func (e *Estimate) allows(s *site, n *node) obstacle {
	if !s.seen[n.at] {
		s.seen[n.at], s.verdicts[n.at] = true, e.judge(s, n)
	}
	return s.verdicts[n.at]
}

func (e *Estimate) judge(s *site, n *node) obstacle {
	if taint := s.untolerated(n); taint != nil {
		text := taint.Key
		if taint.Value != "" {
			text += "=" + taint.Value
		}
		return obstacle{kind: tainted, detail: e.reason(excerpt.Line(text, maxDetail))}
	}
	if !s.matches(n) {
		return obstacle{kind: notSelected}
	}
	return fit
}

func (s *site) matches(n *node) bool {
	matches, err := s.affinity.Match(n.Node)
	return err == nil && matches
}

// untolerated returns a taint that keeps pods away. That of a cordon is one besides.
func (s *site) untolerated(n *node) *corev1.Taint {
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && podclass.Toleration(s.tolerations, taint) == nil {
			return taint
		}
	}
	return nil
}
