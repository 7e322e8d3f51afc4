// Package status builds the status of a NodeMaintenance: its conditions, its summary, and the list
// of its nodes, which is cut to what fits into an object.
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

// Totals counts the nodes and pods of a maintenance.
type Totals struct {
	Nodes, Drained, Unread int
	Returned               int // drained and back
	Awaited                int // not given back while another controller removes them
	Cordoned               int
	Omitted                int // from the list
	GivenBack              int // before the others

	Pending, Evacuating, Retained int32
	WouldBlock                    int32 // if the nodes were drained
	Late                          bool  // pods are left at the deadline

	// Budgets have to be locked for the pods that stay, Locked are.
	Budgets, Locked int
	Obstacles       []Obstacle // by type
}

// Left returns the number of pods that the maintenance waits for.
func (t Totals) Left() int32 { return t.Pending + t.Evacuating }

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
	Example     v1alpha1.Blocker
}

// Obstacles sums up the blockers of a node by type, without those of work in progress.
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

// Add adds an obstacle to those of its type.
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

func compareExamples(a, b v1alpha1.Blocker) int {
	return cmp.Or(blocker.CompareObjects(a.Object, b.Object), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Suggestion, b.Suggestion))
}

// Summary returns the state in one short line. Ending is the condition of a maintenance in Complete.
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
