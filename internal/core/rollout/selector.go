package rollout

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// selector matches nodes as the scheduler does.
type selector struct {
	full *nodeaffinity.NodeSelector
	// terms save allocations if the selector is by labels only; nil otherwise.
	terms []labels.Selector
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// readSelector compiles spec.nodeSelector. The error names the field at fault.
func readSelector(spec *corev1.NodeSelector) (*selector, error) {
	if spec == nil {
		return nil, errors.New("spec.nodeSelector: is required")
	}
	full, err := nodeaffinity.NewNodeSelector(spec, field.WithPath(field.NewPath("spec", "nodeSelector")))
	if err != nil {
		return nil, err
	}
	return &selector{full: full, terms: byLabels(spec)}, nil
}

// byLabels compiles a valid selector by labels; nil if it is by names, too.
func byLabels(spec *corev1.NodeSelector) (terms []labels.Selector) {
	for _, term := range spec.NodeSelectorTerms {
		if len(term.MatchFields) > 0 || len(term.MatchExpressions) == 0 {
			return nil
		}
		one := labels.NewSelector()
		for _, of := range term.MatchExpressions {
			requirement, err := labels.NewRequirement(of.Key, operators[of.Operator], of.Values)
			if err != nil {
				return nil
			}
			one = one.Add(*requirement)
		}
		terms = append(terms, one)
	}
	return terms
}

// Match returns true if one of the terms selects the node.
func (s *selector) Match(node *corev1.Node) bool {
	if s.terms == nil {
		return s.full.Match(node)
	}
	for _, term := range s.terms {
		if term.Matches(labels.Set(node.Labels)) {
			return true
		}
	}
	return false
}
