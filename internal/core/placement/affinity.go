package placement

import (
	corev1 "k8s.io/api/core/v1"
)

// antiTerms returns the anti-affinity of a pod and that of others against it. Unknown namespaces
// match all.
func (e *Estimate) antiTerms(pod *corev1.Pod) (all []*term) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	required := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range required {
		m, _ := e.namespaced(pod, &required[i])
		key := required[i].TopologyKey
		all = append(all, e.termOf("anti|"+key+"|"+m.name(), func() *term {
			domains := e.topologyOf(key).of
			return &term{key: key, matchers: []matcher{m}, matched: newTally(domains), holders: newTally(domains)}
		}))
	}
	return all
}

// affinityTerms returns the affinity of a pod. Unknown says why its namespaces are unknown.
func (e *Estimate) affinityTerms(pod *corev1.Pod) (all []*term, unknown string) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil, ""
	}
	required := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	matchers := make([]matcher, len(required))
	name := ""
	for i := range required {
		m, known := e.namespaced(pod, &required[i])
		if !known {
			return nil, unknownPrefix + "its affinity selects namespaces, which could not be read: " + e.unread.Namespaces
		}
		matchers[i] = m
		name += "|" + m.name()
	}
	for i := range required {
		key := required[i].TopologyKey
		all = append(all, e.termOf("affinity|"+key+name, func() *term {
			return &term{key: key, matchers: matchers, matched: newTally(e.topologyOf(key).of)}
		}))
	}
	return all, ""
}

func (e *Estimate) agrees(c *class, n *node) obstacle {
	for i := range c.spread {
		if o := c.spread[i].allows(n); o != fit {
			o.detail = e.reason(c.spread[i].term.key)
			return o
		}
	}
	if t := c.lacks(n); t != nil {
		return obstacle{kind: alone, detail: e.reason(t.key)}
	}
	for _, t := range c.anti {
		if t.matched.at(n.at) > 0 {
			return obstacle{kind: avoided, detail: e.reason(t.key)}
		}
	}
	for _, t := range c.kin.refusedBy {
		if t.holders.at(n.at) > 0 {
			return obstacle{kind: refused, detail: e.reason(t.key)}
		}
	}
	return fit
}

// lacks returns an affinity term without a pod near the node. The first of a series may go
// anywhere.
func (c *class) lacks(n *node) *term {
	var missing *term
	found := false
	for _, t := range c.affinity {
		if t.matched.domains[n.at] == nowhere {
			return t
		}
		found = found || t.matched.total > 0
		if missing == nil && t.matched.at(n.at) == 0 {
			missing = t
		}
	}
	if missing != nil && !found && missing.matches(c.kin) {
		return nil
	}
	return missing
}
