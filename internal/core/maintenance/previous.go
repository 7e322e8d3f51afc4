package maintenance

import (
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// pastTarget is a target read back from a status.
type pastTarget struct {
	// id is its number among those of one decision.
	id      int
	set     drainplan.Set
	entries []drainplan.Entry
}

// previous reads what the status of a maintenance says of a node. Before its drain was
// recorded that is no more than what it was going to do.
func (r *reader) previous(one *selection) (*v1alpha1.NodeMaintenanceNodeStatus, *pastTarget) {
	m := one.maintenance
	observed := m.observed[one.node.name()]
	var lines []v1alpha1.DrainPlanEntry
	switch {
	case hasStarted(m.object, v1alpha1.StageIdle) && !hasStarted(m.object, v1alpha1.StageDrain):
		return nil, r.pastTarget(nil)
	case observed != nil:
		lines = observed.DrainTargets
	case one.node.ledger.Lists(m.name()):
		lines = status.Omitted(&m.object.Status)
	}
	return observed, r.pastTarget(lines)
}

// pastTarget compiles equal targets once.
func (r *reader) pastTarget(lines []v1alpha1.DrainPlanEntry) *pastTarget {
	key := keyOf(lines)
	known, found := r.targets[string(key)]
	if !found {
		entries := drainplan.Parse(lines)
		known = &pastTarget{id: len(r.targets), set: drainplan.NewSet(entries...), entries: entries}
		r.targets[string(key)] = known
	}
	return known
}

// keyOf names targets as they are written.
func keyOf(lines []v1alpha1.DrainPlanEntry) []byte {
	key := make([]byte, 0, 512)
	for i := range lines {
		key = append(append(key, lines[i].PodType...), ' ')
		key = strconv.AppendInt(key, int64(lines[i].PodPriority), 10)
		if lines[i].PodSelector != nil {
			key = appendSelector(key, lines[i].PodSelector)
		}
		key = append(key, ';')
	}
	return key
}

// appendSelector spells a selector. Quotes keep different ones apart.
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
