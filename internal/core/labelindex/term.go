package labelindex

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// nameField is the key of an object's name. No label has it: the part of a key
// before a slash is never empty.
const nameField = "/" + metav1.ObjectNameField

// Name returns the pair of an object's name, for selectors with a field metadata.name.
func Name(name string) Pair { return Pair{nameField, name} }

// Condition is met by an object that has one of the pairs.
type Condition []Pair

// Term is met by an object that meets each condition. It holds those of a
// selector that name the labels that an object must have; the rest, such as that
// there is no such label, is missing.
type Term []Condition

// OfSelector returns the terms of a label selector: one, or none if it matches nothing.
func OfSelector(selector labels.Selector) []Term {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil
	}
	var term Term
	for n := range requirements {
		switch r := &requirements[n]; r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			term = append(term, newCondition(r.Key(), r.ValuesUnsorted()))
		}
	}
	return []Term{term}
}

// OfNodeSelector returns the terms of a node selector. As the scheduler reads it,
// no term matches nothing, and neither does a term that is empty.
func OfNodeSelector(selector *corev1.NodeSelector) []Term {
	if selector == nil {
		return nil
	}
	var terms []Term
	for _, alternative := range selector.NodeSelectorTerms {
		if len(alternative.MatchExpressions)+len(alternative.MatchFields) == 0 {
			continue
		}
		var term Term
		for _, r := range alternative.MatchExpressions {
			if r.Operator == corev1.NodeSelectorOpIn {
				term = append(term, newCondition(r.Key, r.Values))
			}
		}
		for _, r := range alternative.MatchFields {
			if r.Operator == corev1.NodeSelectorOpIn && r.Key == metav1.ObjectNameField {
				term = append(term, newCondition(nameField, r.Values))
			}
		}
		terms = append(terms, term)
	}
	return terms
}

func newCondition(key string, values []string) Condition {
	condition := make(Condition, 0, len(values))
	for _, value := range slices.Compact(slices.Sorted(slices.Values(values))) {
		condition = append(condition, Pair{key, value})
	}
	return condition
}

// Anchor returns the condition by which to look for what meets the term: the one
// with the fewest objects behind its pairs, of equals the first. Nothing is found
// if the term has no condition. behind says how many objects there are behind a
// pair; nil knows of none and leaves the condition with the fewest pairs.
func (t Term) Anchor(behind func(Pair) int) (anchor Condition, found bool) {
	if len(t) == 0 {
		return nil, false
	}
	cost := func(c Condition) int {
		sum := len(c)
		for _, pair := range c {
			if behind != nil {
				sum += behind(pair)
			}
		}
		return sum
	}
	return slices.MinFunc(t, func(a, b Condition) int { return cmp.Compare(cost(a), cost(b)) }), true
}
