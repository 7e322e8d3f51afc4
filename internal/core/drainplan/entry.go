// Package drainplan holds the order in which the pods of a node leave (KEP-4212). A plan is a
// list of entries; a Set is what some of them select together. Sets grow by joining and never
// shrink, and contain no superfluous entry. A plan that was never validated is sorted and
// completed. Only an invalid selector or pod type is refused, with the name of its field.
package drainplan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// order lists the pod types as they leave a node.
var order = [...]v1alpha1.PodType{v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet, v1alpha1.PodTypeStatic}

// Depth returns the place of a pod type in the order in which types leave a node; false for an
// unknown type.
func Depth(podType v1alpha1.PodType) (int, bool) {
	podType = cmp.Or(podType, v1alpha1.PodTypeDefault)
	depth := slices.Index(order[:], podType)
	return depth, depth >= 0
}

// Subject holds the fields of a pod that plans select by.
type Subject struct {
	depth    int
	priority int32
	labels   labels.Set
}

// SubjectOf reads a pod.
func SubjectOf(pod *corev1.Pod) Subject {
	depth, _ := Depth(podclass.Type(pod))
	return Subject{depth: depth, priority: podclass.Priority(pod), labels: pod.Labels}
}

// Type returns the pod's type.
func (s Subject) Type() v1alpha1.PodType { return order[s.depth] }

// Depth returns the depth of the pod's type.
func (s Subject) Depth() int { return s.depth }

// Entry is an entry of a plan whose selector is compiled.
type Entry struct {
	spec    v1alpha1.DrainPlanEntry
	depth   int
	matcher labels.Selector
	choices choices
	// line identifies the selector, equal for all its spellings; empty is none.
	line string
}

// Compile compiles entries, in their order. The error names the field of the first invalid entry,
// below path.
func Compile(path string, entries []v1alpha1.DrainPlanEntry) ([]Entry, error) {
	compiled := make([]Entry, 0, len(entries))
	for i, spec := range entries {
		entry, field, err := compile(spec)
		if err != nil {
			return nil, fmt.Errorf("%s[%d].%s: %w", path, i, field, err)
		}
		compiled = append(compiled, entry)
	}
	return compiled, nil
}

// Parse compiles the entries of a status, without invalid ones.
func Parse(entries []v1alpha1.DrainPlanEntry) []Entry {
	var parsed []Entry
	for _, spec := range entries {
		if entry, _, err := compile(spec); err == nil {
			parsed = append(parsed, entry)
		}
	}
	return parsed
}

func compile(spec v1alpha1.DrainPlanEntry) (entry Entry, field string, err error) {
	depth, known := Depth(spec.PodType)
	if !known {
		return Entry{}, "podType", fmt.Errorf("must be Default, DaemonSet or Static, is %q", spec.PodType)
	}
	spec = complete(spec)
	if spec.PodSelector == nil {
		return Entry{spec: spec, depth: depth, matcher: labels.Everything()}, "", nil
	}
	matcher, err := metav1.LabelSelectorAsSelector(spec.PodSelector)
	if err != nil {
		return Entry{}, "podSelector", err
	}
	requirements, _ := matcher.Requirements()
	selected := choicesOf(requirements)
	return Entry{spec: spec, depth: depth, matcher: matcher, choices: selected, line: selected.text()}, "", nil
}

// complete sets the defaults of an entry. An empty selector selects every pod, as an absent one
// does.
func complete(spec v1alpha1.DrainPlanEntry) v1alpha1.DrainPlanEntry {
	spec.PodType = cmp.Or(spec.PodType, v1alpha1.PodTypeDefault)
	if s := spec.PodSelector; s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		spec.PodSelector = nil
	}
	return spec
}

// Compare orders entries as a plan does: by pod type, then by ascending priority, then with a
// selector before without.
func (e Entry) Compare(other Entry) int {
	return cmp.Or(
		cmp.Compare(e.depth, other.depth),
		cmp.Compare(e.spec.PodPriority, other.spec.PodPriority),
		cmp.Compare(e.breadth(), other.breadth()),
	)
}

func (e Entry) breadth() int {
	if e.line == "" {
		return 1
	}
	return 0
}

// Depth returns the depth of the entry's pod type.
func (e Entry) Depth() int { return e.depth }

// Same returns true if both entries have the same pod type, priority and selector.
func (e Entry) Same(other Entry) bool { return e.Compare(other) == 0 && e.line == other.line }

func (e Entry) within(wide Entry) bool {
	return e.depth == wide.depth && e.spec.PodPriority <= wide.spec.PodPriority && e.selectsWithin(wide)
}

func (e Entry) selectsWithin(wide Entry) bool {
	if wide.line == "" || e.line == wide.line {
		return true
	}
	steps := maxSteps
	return e.choices.covered([]choices{wide.choices}, &steps)
}

// Covers returns true if the entry selects the pod.
func (e Entry) Covers(pod Subject) bool {
	return e.depth == pod.depth && e.spec.PodPriority >= pod.priority && (e.line == "" || e.matcher.Matches(pod.labels))
}

// String returns the entry in one short line.
func (e Entry) String() string {
	if e.line == "" {
		return fmt.Sprintf("%s %d", e.spec.PodType, e.spec.PodPriority)
	}
	return fmt.Sprintf("%s %d (%s)", e.spec.PodType, e.spec.PodPriority, e.line)
}
