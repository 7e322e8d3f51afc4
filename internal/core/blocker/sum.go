package blocker

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// MaxBlockers limits the blockers that one node shows.
const MaxBlockers = 10

// Sum merges blockers of the same type and object, most pods first, and keeps MaxBlockers. The
// order of the input does not matter.
func Sum(blockers []v1alpha1.Blocker) []v1alpha1.Blocker {
	sorted := slices.SortedFunc(slices.Values(blockers), oldestWithinObject)
	var sums []v1alpha1.Blocker
	for _, b := range sorted {
		if last := len(sums) - 1; last >= 0 && sameObject(sums[last], b) == 0 {
			sums[last].PodCount += b.PodCount
			continue
		}
		sums = append(sums, b)
	}
	slices.SortStableFunc(sums, func(a, b v1alpha1.Blocker) int { return cmp.Compare(b.PodCount, a.PodCount) })
	return sums[:min(len(sums), MaxBlockers)]
}

func sameObject(a, b v1alpha1.Blocker) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), CompareObjects(a.Object, b.Object))
}

func oldestWithinObject(a, b v1alpha1.Blocker) int {
	return cmp.Or(
		sameObject(a, b), older(a.SinceTime, b.SinceTime),
		cmp.Compare(a.Message, b.Message), cmp.Compare(a.Suggestion, b.Suggestion), cmp.Compare(a.Object.UID, b.Object.UID),
	)
}

func older(a, b *metav1.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Compare(b.Time)
	}
}
