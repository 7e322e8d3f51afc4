package view

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Blocker is a printed blocker, or the reason why pods stay.
type Blocker struct {
	Type v1alpha1.BlockerType `json:"type"`
	// Object is kind/namespace/name; empty if unknown.
	Object     string       `json:"object,omitempty"`
	PodCount   int          `json:"podCount"`
	NodeCount  int          `json:"nodeCount,omitempty"`
	SinceTime  *metav1.Time `json:"sinceTime,omitempty"`
	Message    string       `json:"message,omitempty"`
	Suggestion string       `json:"suggestion,omitempty"`
	// AtWork is true if the object is moving the pods, which is no problem.
	AtWork bool `json:"atWork,omitempty"`

	object v1alpha1.BlockerObject
}

// importance ranks blockers: nodes first, then those that need help, then those at work.
var importance = map[v1alpha1.BlockerType]int{
	v1alpha1.BlockerForeignUncordon: -3, v1alpha1.BlockerCordonRefused: -3, v1alpha1.BlockerRecordRefused: -3,
	v1alpha1.BlockerNodeUnreachable: -2, v1alpha1.BlockerClockSkewed: -2, v1alpha1.BlockerNodeBudget: -2,
	v1alpha1.BlockerPDBUnsatisfiable: -1, v1alpha1.BlockerMultiplePDBs: -1, v1alpha1.BlockerWebhookDenied: -1,
	v1alpha1.BlockerEvictionError: -1, v1alpha1.BlockerTerminatingFinalizer: -1, v1alpha1.BlockerTerminatingGrace: -1,
	v1alpha1.BlockerRecreated: -1, v1alpha1.BlockerEvacuationRefused: -1, v1alpha1.BlockerDeletionRefused: -1,
	v1alpha1.BlockerWithdrawalRefused: -1, v1alpha1.BlockerDrainRuleUnclear: -1, v1alpha1.BlockerNodeAgentDown: -1,
	v1alpha1.BlockerWaitingForCompletion: 1, v1alpha1.BlockerForeignDrain: 1, v1alpha1.BlockerEvacuatorRunning: 2,
}

func inOrder(blockers []v1alpha1.Blocker) []Blocker {
	var shown []Blocker
	for i := range blockers {
		b := &blockers[i]
		one := Blocker{
			Type: v1alpha1.BlockerType(excerpt.Line(string(b.Type), maxWords)), Object: excerpt.Line(blocker.ObjectText(b.Object), maxWords),
			PodCount: count(b.PodCount), SinceTime: b.SinceTime,
			Message: excerpt.Line(b.Message, maxWords), Suggestion: excerpt.Line(b.Suggestion, maxCommand),
			AtWork: blocker.AtWork(b.Type), object: b.Object,
		}
		shown = append(shown, one)
	}
	slices.SortStableFunc(shown, compareImportance)
	return shown
}

func compareImportance(a, b Blocker) int {
	return cmp.Or(cmp.Compare(importance[a.Type], importance[b.Type]), cmp.Compare(b.PodCount, a.PodCount),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Object, b.Object))
}

func blockersOf(m *v1alpha1.NodeMaintenance) []Blocker {
	type key struct {
		kind   v1alpha1.BlockerType
		object string
	}
	at := map[key]int{}
	var all []v1alpha1.Blocker
	var nodes []int
	for i := range m.Status.NodeStatuses {
		for _, b := range m.Status.NodeStatuses[i].Blockers {
			k := key{b.Type, blocker.ObjectText(b.Object)}
			n, known := at[k]
			if !known {
				at[k] = len(all)
				all, nodes = append(all, b), append(nodes, 1)
				continue
			}
			all[n].PodCount += b.PodCount
			nodes[n]++
			if b.SinceTime != nil && (all[n].SinceTime == nil || b.SinceTime.Before(all[n].SinceTime)) {
				all[n].SinceTime = b.SinceTime
			}
		}
	}
	shown := make([]Blocker, 0, len(all))
	for i := range all {
		one := inOrder(all[i : i+1])[0]
		one.NodeCount = nodes[i]
		shown = append(shown, one)
	}
	slices.SortStableFunc(shown, compareImportance)
	return shown
}

const maxBlockers = 50
