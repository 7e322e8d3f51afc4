package plan

import (
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// Past is a target as a status recorded it.
type Past struct {
	id      int // within one decision
	Set     drainplan.Set
	entries []drainplan.Entry
}

// Pasts holds the targets that one decision has read. Equal ones are compiled once.
type Pasts map[string]*Past

// Read compiles drainTargets.
func (p Pasts) Read(lines []v1alpha1.DrainPlanEntry) *Past {
	key := Key(lines)
	known, found := p[key]
	if !found {
		entries := drainplan.Parse(lines)
		known = &Past{id: len(p), Set: drainplan.NewSet(entries...), entries: entries}
		p[key] = known
	}
	return known
}

// Key returns a key of drainTargets as they are written.
func Key(lines []v1alpha1.DrainPlanEntry) string {
	key := make([]byte, 0, 512)
	for i := range lines {
		key = append(append(key, lines[i].PodType...), ' ')
		key = strconv.AppendInt(key, int64(lines[i].PodPriority), 10)
		if lines[i].PodSelector != nil {
			key = appendSelector(key, lines[i].PodSelector)
		}
		key = append(key, ';')
	}
	return string(key)
}

// appendSelector quotes what users write, so that different selectors have different keys.
func appendSelector(key []byte, selector *metav1.LabelSelector) []byte {
	for _, label := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		key = strconv.AppendQuote(append(key, ' '), label)
		key = strconv.AppendQuote(append(key, '='), selector.MatchLabels[label])
	}
	for _, expression := range selector.MatchExpressions {
		key = strconv.AppendQuote(append(key, '&'), expression.Key)
		key = strconv.AppendQuote(key, string(expression.Operator))
		for _, value := range expression.Values {
			key = strconv.AppendQuote(append(key, ','), value)
		}
	}
	return key
}
