package drainrule

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// answer is yes, no, or that it is unclear, and what makes it so. That says what
// is wrong and what would help.
type answer struct {
	no      bool
	unclear string
}

// and is no if one of the two is no, whatever the other one is.
func (a answer) and(b answer) answer {
	switch {
	case a.no || b.no:
		return answer{no: true}
	case a.unclear != "":
		return a
	}
	return b
}

// anyOf is yes if the answer to one of the entries is yes, whatever the others are.
func anyOf(entries []entry, ask func(*entry) answer) answer {
	all := answer{no: true}
	for n := range entries {
		a := ask(&entries[n])
		if !a.no && a.unclear == "" {
			return a
		}
		if all.no {
			all = a
		}
	}
	return all
}

// entry is one of a list of selectors: by the labels of an object, and by those
// of the Cluster or namespace around it.
type entry struct{ own, around selector }

// selector is a label selector.
type selector struct {
	// understood is what of it can be understood; nil selects everything.
	understood labels.Selector
	// unclear is why the rest cannot be.
	unclear string
}

// newSelector compiles label by label, so that what can be understood of a
// selector still excludes. field is where it stands.
func newSelector(field string, from *metav1.LabelSelector) selector {
	if from == nil {
		return selector{}
	}
	var s selector
	for key, value := range from.MatchLabels {
		s.add(field, &metav1.LabelSelector{MatchLabels: map[string]string{key: value}})
	}
	for n := range from.MatchExpressions {
		s.add(field, &metav1.LabelSelector{MatchExpressions: from.MatchExpressions[n : n+1]})
	}
	return s
}

// add takes one label or expression.
func (s *selector) add(field string, part *metav1.LabelSelector) {
	compiled, err := metav1.LabelSelectorAsSelector(part)
	if err != nil {
		unclear := fmt.Sprintf("%s cannot be understood: %v. Correct or delete the rule.", field, err)
		// Labels come in any order, and the reason is always the same one.
		if s.unclear == "" || unclear < s.unclear {
			s.unclear = unclear
		}
		return
	}
	if s.understood == nil {
		s.understood = labels.NewSelector()
	}
	requirements, _ := compiled.Requirements()
	s.understood = s.understood.Add(requirements...)
}

// everything returns true if there are no labels that it does not select.
func (s *selector) everything() bool { return s.understood == nil && s.unclear == "" }

func (s *selector) of(set map[string]string) answer {
	if s.understood != nil && !s.understood.Matches(labels.Set(set)) {
		return answer{no: true}
	}
	return answer{unclear: s.unclear}
}

// ofNamespace asks about the labels of a namespace. One that does not exist is
// unknown like one that was not read: a pod is never without.
func (s *selector) ofNamespace(name string, facts *Facts) answer {
	if set, read := facts.Namespaces[name]; read {
		return s.of(set)
	}
	unread := facts.NamespaceErrors[name]
	if unread == "" {
		return answer{unclear: fmt.Sprintf("namespace %s does not exist. Delete the pod; until then only label %s on it decides.",
			name, v1alpha1.DrainLabel)}
	}
	return answer{unclear: fmt.Sprintf("namespace %s could not be read: %s. It is tried again; until then only label %s on the pod decides.",
		name, unread, v1alpha1.DrainLabel)}
}
