package drainrule

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Set holds the compiled MachineDrainRules of one namespace.
type Set struct{ rules []rule }

// Rules are the rules that apply, or may apply, to one Machine or node.
type Rules struct{ candidates []candidate }

// None reports whether no rule applies or may apply.
func (r Rules) None() bool { return len(r.candidates) == 0 }

// candidate is a rule with the answer whether it applies to the Machine or node.
type candidate struct {
	*rule
	answer answer
}

type rule struct {
	name      string
	treatment Treatment

	machines, pods, nodes []entry
}

// Compile compiles the rules of one namespace.
func Compile(rules []*v1alpha1.MachineDrainRule) Set {
	sorted := slices.SortedFunc(slices.Values(rules), func(a, b *v1alpha1.MachineDrainRule) int { return cmp.Compare(a.Name, b.Name) })
	compiled := make([]rule, 0, len(sorted))
	for _, r := range sorted {
		compiled = append(compiled, compile(r))
	}
	return Set{rules: compiled}
}

func compile(r *v1alpha1.MachineDrainRule) rule {
	compiled := rule{name: r.Namespace + "/" + r.Name, treatment: treatmentOf(r)}
	for n, m := range r.Spec.Machines {
		field := fmt.Sprintf("spec.machines[%d].", n)
		compiled.machines = append(compiled.machines,
			entry{own: newSelector(field+"selector", m.Selector), around: newSelector(field+"clusterSelector", m.ClusterSelector)})
	}
	for n, p := range r.Spec.Pods {
		field := fmt.Sprintf("spec.pods[%d].", n)
		compiled.pods = append(compiled.pods,
			entry{own: newSelector(field+"selector", p.Selector), around: newSelector(field+"namespaceSelector", p.NamespaceSelector)})
	}
	for n, node := range r.Spec.Nodes {
		compiled.nodes = append(compiled.nodes, entry{own: newSelector(fmt.Sprintf("spec.nodes[%d].selector", n), node.Selector)})
	}
	return compiled
}

// Unread replaces the rules of a namespace that could not be read. They may apply to any pod
// without a label.
func Unread(namespace, why string) Set {
	return Set{rules: []rule{{nodes: []entry{{}}, treatment: Treatment{
		Order:  math.MinInt32,
		Object: v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Namespace", Name: namespace},
		Cause: fmt.Sprintf("The MachineDrainRules of namespace %s could not be read: %s. Until a retry succeeds, only label %s on the pod decides.",
			namespace, why, v1alpha1.DrainLabel),
	}}}}
}

// ForMachine returns the rules of the namespace that select a Machine by its labels and those of
// its Cluster. Rules with nodes and without machines are not for Machines.
func ForMachine(rules []*v1alpha1.MachineDrainRule, machine, cluster map[string]string) Rules {
	return Compile(rules).choose(func(r *rule) answer {
		if len(r.machines) == 0 {
			return answer{no: len(r.nodes) > 0}
		}
		return anyOf(r.machines, func(e *entry) answer { return e.own.of(machine).and(e.around.of(cluster)) })
	})
}

// ForNode returns the rules that select a node under a NodeMaintenance by its labels. Rules without
// nodes are not for NodeMaintenances.
func (s Set) ForNode(node map[string]string) Rules {
	return s.choose(func(r *rule) answer {
		if len(r.nodes) == 0 {
			return answer{no: true}
		}
		return anyOf(r.nodes, func(e *entry) answer { return e.own.of(node) })
	})
}

func (s Set) choose(ask func(*rule) answer) Rules {
	var candidates []candidate
	for n := range s.rules {
		if a := ask(&s.rules[n]); !a.no {
			candidates = append(candidates, candidate{rule: &s.rules[n], answer: a})
		}
	}
	return Rules{candidates: candidates}
}

func (c *candidate) appliesTo(pod *corev1.Pod, facts *Facts) answer {
	if len(c.pods) == 0 {
		return c.answer
	}
	return c.answer.and(anyOf(c.pods, func(e *entry) answer {
		own := e.own.of(pod.Labels)
		if own.no || e.around.everything() {
			return own
		}
		return own.and(e.around.ofNamespace(pod.Namespace, facts))
	}))
}
