package drainplan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Set is a target set: it covers the pods that any of its entries covers. The zero value covers
// nothing.
type Set struct {
	// entries are in order and none makes another one superfluous.
	entries []Entry
	key     string
}

// NewSet returns the set of some entries, in any order.
func NewSet(entries ...Entry) Set {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int {
		return cmp.Or(a.Compare(b), cmp.Compare(a.line, b.line))
	})
	return Set{entries: prune(slices.CompactFunc(sorted, Entry.Same))}.named()
}

// Join returns a set that covers what either set covers.
func Join(a, b Set) Set {
	switch {
	case a.Empty() || a.key == b.key:
		return b
	case b.Empty():
		return a
	}
	return NewSet(slices.Concat(a.entries, b.entries)...)
}

// prune removes every entry that another one makes superfluous.
func prune(distinct []Entry) []Entry {
	var kept []Entry
	for _, entry := range distinct {
		if !slices.ContainsFunc(distinct, func(wide Entry) bool { return !wide.Same(entry) && entry.within(wide) }) {
			kept = append(kept, entry)
		}
	}
	return kept
}

func (s Set) named() Set {
	words := make([]string, 0, len(s.entries))
	for _, entry := range s.entries {
		words = append(words, entry.String())
	}
	s.key = strings.Join(words, "; ")
	return s
}

// Empty returns true if the set covers nothing.
func (s Set) Empty() bool { return len(s.entries) == 0 }

// Equal returns true if both sets have the same entries.
func (s Set) Equal(other Set) bool { return s.key == other.key }

// Key returns the same for equal sets.
func (s Set) Key() string { return s.key }

// Top returns the greatest entry of a set that is not empty.
func (s Set) Top() Entry { return s.entries[len(s.entries)-1] }

// Covers returns true if some entry covers the pod.
func (s Set) Covers(pod *corev1.Pod) bool { return s.CoversSubject(SubjectOf(pod)) }

// CoversSubject returns true if some entry covers the pod.
func (s Set) CoversSubject(pod Subject) bool {
	for i := range s.entries {
		if s.entries[i].Covers(pod) {
			return true
		}
	}
	return false
}

// NotCoveredBy returns the entries that cover pods which the other set, as far as selectors show,
// does not.
func (s Set) NotCoveredBy(other Set) []Entry {
	return slices.DeleteFunc(slices.Clone(s.entries), other.includes)
}

// includes returns true if some entries together cover whatever e covers.
func (s Set) includes(e Entry) bool {
	var wide []choices
	for _, one := range s.entries {
		if one.depth != e.depth || one.spec.PodPriority < e.spec.PodPriority {
			continue
		}
		if one.line == "" || one.line == e.line {
			return true
		}
		wide = append(wide, one.choices)
	}
	steps := maxSteps
	return e.choices.covered(wide, &steps)
}

// Entries returns the entries of the set, in order. They must not be changed.
func (s Set) Entries() []Entry { return s.entries }

// AtTop returns true if the entry is within one of the greatest of a set that is not empty, and as
// great.
func (s Set) AtTop(e Entry) bool {
	return e.Compare(s.Top()) == 0 && slices.ContainsFunc(s.entries, e.within)
}

// Render writes the set as status.nodeStatuses[].drainTargets does (KEP-4212,
// "PodTypes and Label Selectors Progression"): one line per pod type and
// selector, as soon as the type is reached, with the highest priority that was
// reached; an entry lifts all lines of its type whose pods it selects. The line
// without a selector comes first, the others as known and the set name them.
// Known are the entries whose selectors deserve a line even where another line
// covers them already.
func (s Set) Render(known []Entry) []v1alpha1.DrainPlanEntry {
	var lines []v1alpha1.DrainPlanEntry
	candidates := slices.Concat(known, s.entries)
	for depth := range order {
		var seen []string
		if line, reached := s.line(Entry{depth: depth}); reached {
			lines = append(lines, line)
		}
		for _, candidate := range candidates {
			if candidate.depth != depth || candidate.line == "" || slices.Contains(seen, candidate.line) {
				continue
			}
			seen = append(seen, candidate.line)
			if line, reached := s.line(candidate); reached {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func (s Set) line(of Entry) (v1alpha1.DrainPlanEntry, bool) {
	line, reached := of.spec, false
	for _, entry := range s.entries {
		if entry.depth != of.depth || !of.selectsWithin(entry) {
			continue
		}
		// The last entry has the highest priority.
		line.PodType, line.PodPriority, reached = entry.spec.PodType, entry.spec.PodPriority, true
	}
	return line, reached
}
