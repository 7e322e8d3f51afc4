package placement

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// kin are the pods that no selector tells apart: of one namespace, with the same labels.
type kin struct {
	namespace string
	labels    labels.Set
	on        map[int32]headcount // by node
	counted   []*term             // those that count these pods
	refusedBy []*term             // those of these that pods have against others
}

// headcount counts pods, and those that do not terminate.
type headcount struct{ all, live int32 }

type pair struct{ namespace, key, value string }

// matcher selects pods. Without namespaces it does so in all of them.
type matcher struct {
	namespaces []string
	everywhere bool
	selector   labels.Selector
}

// term counts the pods that all matchers select, by a topology.
type term struct {
	key      string
	matchers []matcher
	live     bool // pods that terminate do not count
	matched  tally
	holders  tally // of the pods that have the term against others
	kins     []*kin

	// Of a term that compares domains: which nodes count, which may have changed.
	eligible *eligibility
	stale    bool
}

func (e *Estimate) kinOf(pod *corev1.Pod) *kin {
	buffer := appendText(nil, pod.Namespace)
	buffer = appendMap(buffer, pod.Labels)
	k := e.kins[string(buffer)]
	if k != nil {
		return k
	}
	k = &kin{namespace: pod.Namespace, labels: pod.Labels, on: map[int32]headcount{}}
	e.kins[string(buffer)] = k
	e.allKins = append(e.allKins, k)
	for key, value := range pod.Labels {
		p := pair{pod.Namespace, key, value}
		e.withPair[p] = append(e.withPair[p], k)
	}
	for _, t := range e.allTerms {
		t.adopt(k)
	}
	return k
}

func (k *kin) add(r *resident, by int32) {
	h := k.on[r.node.at]
	live := by
	if r.terminating {
		live = 0
	}
	h.all, h.live = h.all+by, h.live+live
	if k.on[r.node.at] = h; h.all == 0 {
		delete(k.on, r.node.at)
	}
	for _, t := range k.counted {
		t.count(r.node.at, headcount{by, live})
	}
}

func (t *term) count(node int32, h headcount) {
	if t.live {
		t.matched.add(node, h.live)
	} else {
		t.matched.add(node, h.all)
	}
}

// matches reports whether all matchers select these pods.
func (t *term) matches(k *kin) bool {
	for i := range t.matchers {
		if m := &t.matchers[i]; !m.everywhere && !slices.Contains(m.namespaces, k.namespace) || !m.selector.Matches(k.labels) {
			return false
		}
	}
	return true
}

// adopt has the term count pods that it selects, those that are there and those to come.
func (t *term) adopt(k *kin) {
	if !t.matches(k) {
		return
	}
	t.kins = append(t.kins, k)
	k.counted = append(k.counted, t)
	if t.holders.domains != nil {
		k.refusedBy = append(k.refusedBy, t)
	}
	for node, h := range k.on {
		t.count(node, h)
	}
}

func (e *Estimate) termOf(name string, build func() *term) *term {
	t := e.terms[name]
	if t == nil {
		t = build()
		e.terms[name] = t
		e.allTerms = append(e.allTerms, t)
		e.eachCandidate(&t.matchers[0], t.adopt)
	}
	return t
}

// eachCandidate visits a superset of the pods that a matcher selects, found by label.
func (e *Estimate) eachCandidate(m *matcher, visit func(*kin)) {
	key, values, found := anchor(m.selector)
	if m.everywhere || !found {
		for _, k := range e.allKins {
			visit(k)
		}
		return
	}
	for _, namespace := range m.namespaces {
		for _, value := range values {
			for _, k := range e.withPair[pair{namespace, key, value}] {
				visit(k)
			}
		}
	}
}

func anchor(selector labels.Selector) (key string, values []string, found bool) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return "", nil, true
	}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			return r.Key(), r.Values().UnsortedList(), true
		}
	}
	return "", nil, false
}

func selectorOf(from *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// namespaced returns the namespaces of a term; false if they are unknown.
func (e *Estimate) namespaced(pod *corev1.Pod, t *corev1.PodAffinityTerm) (m matcher, known bool) {
	m.selector = selectorOf(t.LabelSelector)
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		m.namespaces = []string{pod.Namespace}
		return m, true
	}
	m.namespaces = slices.Clone(t.Namespaces)
	if t.NamespaceSelector == nil {
		return m, true
	}
	chosen := selectorOf(t.NamespaceSelector)
	if chosen.Empty() {
		return matcher{everywhere: true, selector: m.selector}, true
	}
	if e.unread.Namespaces != "" {
		return matcher{everywhere: true, selector: m.selector}, false
	}
	for _, name := range slices.Sorted(maps.Keys(e.namespaces)) {
		if chosen.Matches(e.namespaces[name]) {
			m.namespaces = append(m.namespaces, name)
		}
	}
	slices.Sort(m.namespaces)
	m.namespaces = slices.Compact(m.namespaces)
	return m, true
}

func (m *matcher) name() string {
	if m.everywhere {
		return "*|" + m.selector.String()
	}
	return strings.Join(m.namespaces, ",") + "|" + m.selector.String()
}
