// Package status puts into words and numbers how a NodeMaintenance is: its conditions, its
// summary, and the list of its nodes, which is cut to what fits into an object.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Totals is a maintenance in numbers.
type Totals struct {
	Nodes, Drained, Unread int
	// Returned are those of the drained nodes that are back.
	Returned int
	// Awaited are those that are not given back as long as somebody else removes them.
	Awaited int
	// Cordoned are the nodes that hold their cordon.
	Cordoned                      int
	Pending, Evacuating, Retained int32
	// Budgets are to be locked for the pods that stay, Locked are.
	Budgets, Locked int
	// WouldBlock are pods that would be blocked if the nodes were drained.
	WouldBlock int32
	// Late is true if pods are left at the deadline.
	Late bool
	// Omitted are the nodes that the list leaves out, GivenBack those that the maintenance
	// has given back before the others.
	Omitted, GivenBack int
	// Obstacles are those of all nodes, by type.
	Obstacles []Obstacle
}

// Left is how many pods the maintenance waits for.
func (t Totals) Left() int32 { return t.Pending + t.Evacuating }

// blocked is how many pods something holds.
func (t Totals) blocked() int32 {
	pods := int32(0)
	for i := range t.Obstacles {
		pods += t.Obstacles[i].Pods
	}
	return pods
}

// Obstacle is one type of blocker.
type Obstacle struct {
	Type        v1alpha1.BlockerType
	Pods, Nodes int32
	// Example is the least blocker of this type, by all of its words.
	Example v1alpha1.Blocker
}

// Obstacles sums up the blockers of a node that are more than somebody at work, by type.
func Obstacles(blockers []v1alpha1.Blocker) []Obstacle {
	var all []Obstacle
	for i := range blockers {
		if b := &blockers[i]; !blocker.AtWork(b.Type) {
			all = Add(all, Obstacle{Type: b.Type, Pods: b.PodCount, Example: *b})
		}
	}
	for i := range all {
		all[i].Nodes = 1
	}
	return all
}

// Add adds up what is known of one type. There are only a few types.
func Add(obstacles []Obstacle, more Obstacle) []Obstacle {
	at := slices.IndexFunc(obstacles, func(o Obstacle) bool { return o.Type == more.Type })
	if at < 0 {
		return append(obstacles, more)
	}
	known := &obstacles[at]
	known.Pods += more.Pods
	known.Nodes += more.Nodes
	if compareExamples(more.Example, known.Example) < 0 {
		known.Example = more.Example
	}
	return obstacles
}

// compareExamples orders blockers of one type by what a message says of them.
func compareExamples(a, b v1alpha1.Blocker) int {
	return cmp.Or(blocker.CompareObjects(a.Object, b.Object), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Suggestion, b.Suggestion))
}

// Summary is the state in one short line. Ending is the condition of a maintenance in Complete.
func Summary(stage v1alpha1.NodeMaintenanceStage, t Totals, ending metav1.Condition) string {
	var words []string
	switch stage {
	case v1alpha1.StageIdle:
		words = append(words, phrase.Count(t.Nodes, "node")+" planned")
	case v1alpha1.StageCordon:
		words = append(words, fmt.Sprintf("%d/%d nodes cordoned", t.Cordoned, t.Nodes))
	case v1alpha1.StageComplete:
		text := strings.TrimSuffix(ending.Message, ".")
		words = append(words, strings.ToLower(text[:1])+text[1:])
	default:
		words = append(words, fmt.Sprintf("%d/%d nodes drained", t.Drained, t.Nodes))
	}
	left := "left"
	if stage == v1alpha1.StageIdle {
		left = "to leave"
	}
	for _, part := range []struct {
		number int
		text   string
	}{
		{t.Returned, fmt.Sprintf("%d back", t.Returned)},
		{int(t.Left()), phrase.Count(t.Left(), "pod") + " " + left},
		{int(t.blocked()), fmt.Sprintf("%d blocked", t.blocked())},
		{int(t.WouldBlock), fmt.Sprintf("%d would be blocked", t.WouldBlock)},
		{t.Budgets - t.Locked, phrase.Count(t.Budgets-t.Locked, "budget") + " not locked"},
		{t.Unread, phrase.Count(t.Unread, "node") + " not read"},
		{t.Awaited, phrase.Count(t.Awaited, "node") + " cordoned until others are through with draining"},
		{t.Omitted, phrase.Count(t.Omitted, "node") + " not listed"},
		{ones(t.Late), "past the deadline"},
		{t.GivenBack, fmt.Sprintf("%d given back", t.GivenBack)},
	} {
		if part.number > 0 {
			words = append(words, part.text)
		}
	}
	return strings.Join(words, ", ")
}

func ones(counts bool) int {
	if counts {
		return 1
	}
	return 0
}
