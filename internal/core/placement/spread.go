package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
)

type spread struct {
	term       *term
	domains    []int32 // of all nodes, also of those that do not count
	skew       int32
	minDomains int32
	self       int32 // 1 if the pods count themselves
}

// eligibility is which nodes count for a constraint.
type eligibility struct {
	site             *site
	affinity, taints bool
	keys             []string // of labels that a node needs
}

func (g *eligibility) includes(n *node) bool {
	for _, key := range g.keys {
		if _, has := n.Labels[key]; !has {
			return false
		}
	}
	if g.affinity && !g.site.matches(n) {
		return false
	}
	return !g.taints || g.site.untolerated(n) == nil && (!n.cordoned || g.site.toleratesCordon)
}

func (e *Estimate) spreadsOf(pod *corev1.Pod, s *site, siteKey string, k *kin) (all []spread) {
	var required []*corev1.TopologySpreadConstraint
	var keys []string
	for i := range pod.Spec.TopologySpreadConstraints {
		if c := &pod.Spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			required, keys = append(required, c), append(keys, c.TopologyKey)
		}
	}
	for _, c := range required {
		m := matcher{namespaces: []string{pod.Namespace}, selector: spreadSelector(c, pod.Labels)}
		g := &eligibility{
			site: s, keys: keys,
			affinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
			taints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		}
		t := e.termOf("spread|"+c.TopologyKey+"|"+m.name()+g.name(siteKey), func() *term {
			t := &term{key: c.TopologyKey, matchers: []matcher{m}, live: true, eligible: g}
			e.compare(t)
			return t
		})
		one := spread{term: t, domains: e.topologyOf(c.TopologyKey).of, skew: c.MaxSkew, minDomains: ptr.Deref(c.MinDomains, 1)}
		if t.matches(k) {
			one.self = 1
		}
		all = append(all, one)
	}
	return all
}

func (g *eligibility) name(siteKey string) (name string) {
	for _, key := range g.keys {
		name += "|" + key
	}
	if g.affinity {
		name += "|affinity"
	}
	if g.taints {
		name += "|taints"
	}
	if g.affinity || g.taints {
		name += "|" + siteKey
	}
	return name
}

func spreadSelector(c *corev1.TopologySpreadConstraint, of labels.Set) labels.Selector {
	selector := selectorOf(c.LabelSelector)
	for _, key := range c.MatchLabelKeys {
		value, has := of[key]
		if !has {
			continue
		}
		if r, err := labels.NewRequirement(key, selection.In, []string{value}); err == nil {
			selector = selector.Add(*r)
		}
	}
	return selector
}

// compare begins to count, with the nodes that are eligible now.
func (e *Estimate) compare(t *term) {
	domains := e.topologyOf(t.key).of
	eligible := make([]int32, len(domains))
	for i, d := range domains {
		if eligible[i] = nowhere; t.eligible.includes(e.nodes[i]) {
			eligible[i] = d
		}
	}
	t.matched = newTally(eligible)
	t.matched.compare()
	t.stale = false
	for _, k := range t.kins {
		for node, h := range k.on {
			t.count(node, h)
		}
	}
}

// refresh counts again where nodes have become ineligible.
func (e *Estimate) refresh(c *class) {
	for i := range c.spread {
		if c.spread[i].term.stale {
			e.compare(c.spread[i].term)
		}
	}
}

// allows returns what keeps a pod away from the domain of a node.
func (s *spread) allows(n *node) obstacle {
	t := &s.term.matched
	domain := s.domains[n.at]
	if domain == nowhere {
		return obstacle{kind: unspread}
	}
	least := t.spread.least
	if t.spread.count < s.minDomains {
		least = 0
	}
	if t.counts[domain]+s.self-least > s.skew {
		return obstacle{kind: uneven}
	}
	return fit
}
