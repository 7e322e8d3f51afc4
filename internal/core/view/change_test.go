package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestChangesSinceTheLastPicture(t *testing.T) {
	t.Parallel()
	first := kernel(node("node-1", 3), waiting("node-2", 2, "node-1"), node("node-3", 0))
	drained := with(kernel(node("node-1", 0), node("node-2", 0), node("node-3", 0)), "Drained", "Drained")
	for name, test := range map[string]struct {
		before, after *v1alpha1.NodeMaintenance
	}{
		"the first that is seen":         {nil, first},
		"nothing":                        {first, first},
		"a pod has left":                 {first, kernel(node("node-1", 2), waiting("node-2", 2, "node-1"), node("node-3", 0))},
		"the first is held up":           {nil, with(kernel(node("node-1", 3, exhausted("web", 2))), "Blocked", "PDBExhausted")},
		"a node is held up":              {first, with(kernel(node("node-1", 3, exhausted("web", 2)), waiting("node-2", 2, "node-1"), node("node-3", 0)), "Blocked", "PDBExhausted")},
		"it is held up as before":        {kernel(node("node-1", 3, exhausted("web", 2))), kernel(node("node-1", 3, exhausted("web", 1)))},
		"it is not held up now":          {kernel(node("node-1", 3, exhausted("web", 2))), kernel(node("node-1", 3))},
		"somebody moves its pods":        {kernel(node("node-1", 3)), kernel(node("node-1", 3, held1(v1alpha1.BlockerEvacuatorRunning, "x", 1)))},
		"somebody else drains it, too":   {kernel(node("node-1", 3)), kernel(node("node-1", 3, held1(v1alpha1.BlockerForeignDrain, "x", 0)))},
		"nobody else drains it any more": {kernel(node("node-1", 3, held1(v1alpha1.BlockerForeignDrain, "x", 0))), kernel(node("node-1", 3))},
		"it waits for another node":      {kernel(waiting("node-1", 1, "a")), kernel(waiting("node-1", 1, "b"))},
		"a node is drained":              {kernel(node("node-1", 3, exhausted("web", 2)), node("node-2", 1)), kernel(node("node-1", 0), node("node-2", 1))},
		"a drained node is back":         {kernel(node("node-1", 0), node("node-2", 1)), kernel(back("node-1"), node("node-2", 1))},
		"all are drained":                {first, drained},
		"it is complete":                 {drained, over(kernel())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before *view.Status
			if test.before != nil {
				one := status(test.before)
				before = &one
			}
			after := status(test.after)
			golden.Message(t, strings.Join(view.Changes(before, &after), "\n"))
		})
	}
}

// What holds up many nodes is told once.
func TestACauseIsToldOnce(t *testing.T) {
	t.Parallel()
	var before, after []v1alpha1.NodeMaintenanceNodeStatus
	for i := range 15 {
		name := fmt.Sprintf("node-%d", i)
		before = append(before, node(name, 5))
		after = append(after, node(name, 5, exhausted("web", 2)))
	}
	after[4].Blockers = append(after[4].Blockers, exhausted("db", 1))
	was, is := status(kernel(before...)), status(kernel(after...))
	is.State, is.PodsBlocked = was.State, was.PodsBlocked
	want := []string{
		"node-4, node-0, node-1 and 12 more: 30 pods blocked by PodDisruptionBudget/shop/web (PDBExhausted): web is used up. What helps: Wait for web.",
		"node-4: 1 pod blocked by PodDisruptionBudget/shop/db (PDBExhausted): db is used up. What helps: Wait for db.",
	}
	difference.None(t, "changes", want, view.Changes(&was, &is))
	over := []string{
		"node-0, node-1, node-10 and 12 more: no longer blocked by PodDisruptionBudget/shop/web",
		"node-4: no longer blocked by PodDisruptionBudget/shop/db",
	}
	difference.None(t, "changes", over, view.Changes(&is, &was))
}

// However many causes there are, few are told at once.
func TestFewCausesAreReportedImmediately(t *testing.T) {
	t.Parallel()
	var before, after []v1alpha1.NodeMaintenanceNodeStatus
	for i := range 1000 {
		name := fmt.Sprintf("node-%d", i)
		before, after = append(before, node(name, 5)), append(after, node(name, 5, exhausted(name, 2)))
	}
	was, is := status(kernel(before...)), status(kernel(after...))
	is.State = was.State
	got := view.Changes(&was, &is)
	if len(got) != 21 || !strings.Contains(got[20], "more causes changed") {
		t.Errorf("%d lines, the last is %q", len(got), got[len(got)-1])
	}
}

func TestFewChangesAreReportedImmediately(t *testing.T) {
	t.Parallel()
	var before, after []v1alpha1.NodeMaintenanceNodeStatus
	for i := range 1000 {
		before = append(before, node(fmt.Sprintf("node-%d", i), 5))
		after = append(after, node(fmt.Sprintf("node-%d", i), 4))
	}
	was, is := status(kernel(before...)), status(kernel(after...))
	got := view.Changes(&was, &is)
	if len(got) != 21 || got[20] != "kernel: 980 more nodes changed" {
		t.Errorf("%d lines, the last is %q", len(got), got[len(got)-1])
	}
}

func TestWatchersKeepTheirState(t *testing.T) {
	t.Parallel()
	var memory view.Memory
	see := func(after time.Duration, objects ...*v1alpha1.NodeMaintenance) string {
		var told []string
		for name, p := range memory.See(noon.Add(after), objects) {
			told = append(told, fmt.Sprintf("%s: %d gone since %s, %v", name, p.Gone, p.Since.Sub(noon), p.Nodes))
		}
		return strings.Join(told, "; ")
	}
	for _, step := range []struct {
		after  time.Duration
		object *v1alpha1.NodeMaintenance
		want   string
	}{
		{0, kernel(node("a", 5), node("b", 40)), "kernel: 0 gone since 0s, map[a:0 b:0]"},
		{time.Second, kernel(node("a", 3), node("b", 40)), "kernel: 2 gone since 0s, map[a:2 b:0]"},
		{2 * time.Second, kernel(node("a", 4), node("b", 39)), "kernel: 3 gone since 0s, map[a:2 b:1]"},
		{3 * time.Second, kernel(node("b", 39), node("c", 9)), "kernel: 3 gone since 0s, map[a:2 b:1 c:0]"},
		{4 * time.Second, kernel(node("b", 9), node("c", 8)), "kernel: 31 gone since 2s, map[a:2 b:31 c:1]"},
		{5 * time.Second, staged(kernel(node("b", 9)), v1alpha1.StageComplete), ""},
		{6 * time.Second, kernel(node("b", 9)), "kernel: 0 gone since 6s, map[b:0]"},
	} {
		if got := see(step.after, step.object); got != step.want {
			t.Errorf("after %s it remembers %q, want %q", step.after, got, step.want)
		}
	}
}
