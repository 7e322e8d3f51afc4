package drainrule

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// answer is yes, no or unclear; unclear contains the problem and a suggestion.
type answer struct {
	no      bool
	unclear string
}

func (a answer) and(b answer) answer {
	switch {
	case a.no || b.no:
		return answer{no: true}
	case a.unclear != "":
		return a
	}
	return b
}

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

// entry selects by the labels of an object and of its Cluster or namespace.
type entry struct{ own, around selector }

type selector struct {
	// understood is its valid part; nil selects everything.
	understood labels.Selector
	// unclear describes its invalid part.
	unclear string
}

// newSelector compiles label by label, so that the valid part still excludes objects. Field is its
// path.
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

func (s *selector) add(field string, part *metav1.LabelSelector) {
	compiled, err := metav1.LabelSelectorAsSelector(part)
	if err != nil {
		unclear := fmt.Sprintf("%s is invalid: %v. Correct or delete the rule.", field, err)
		// The result must not depend on the order of labels.
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

func (s *selector) everything() bool { return s.understood == nil && s.unclear == "" }

func (s *selector) of(set map[string]string) answer {
	if s.understood != nil && !s.understood.Matches(labels.Set(set)) {
		return answer{no: true}
	}
	return answer{unclear: s.unclear}
}

// ofNamespace matches the labels of a namespace. A missing one counts as unread, since every pod
// has one.
func (s *selector) ofNamespace(name string, facts *Facts) answer {
	if set, read := facts.Namespaces[name]; read {
		return s.of(set)
	}
	unread := facts.NamespaceErrors[name]
	if unread == "" {
		return answer{unclear: fmt.Sprintf("namespace %s does not exist. Delete the pod; until then only label %s on it decides.",
			name, v1alpha1.DrainLabel)}
	}
	return answer{unclear: fmt.Sprintf("namespace %s could not be read: %s. Until a retry succeeds, only label %s on the pod decides.",
		name, unread, v1alpha1.DrainLabel)}
}
