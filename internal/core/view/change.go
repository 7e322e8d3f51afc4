package view

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const maxChanges, maxTold = 20, 3

// Changes returns a line for each change of a maintenance. Before is nil at first.
func Changes(before *Status, after *Status) []string {
	var lines []string
	if before == nil && after.NodeCount == 0 && after.State == StateDraining {
		return nil // Its controller has said nothing yet.
	}
	if before == nil || before.Stage != after.Stage || before.State != after.State || before.DrainedCount != after.DrainedCount || before.NodeCount != after.NodeCount {
		lines = append(lines, after.Name+": "+after.Brief())
	}
	known := before.byName()
	held := causes{by: map[string]*cause{}}
	for i := range after.Nodes {
		held.compare(known[after.Nodes[i].Name], &after.Nodes[i])
	}
	told := 0
	for i := range after.Nodes {
		n := &after.Nodes[i]
		if change := n.change(known[n.Name]); change != "" {
			if told++; told <= maxChanges {
				lines = append(lines, n.Name+": "+change)
			}
		}
		lines = append(lines, held.from(n.Name)...)
	}
	if told > maxChanges {
		lines = append(lines, fmt.Sprintf("%s: %s", after.Name, phrase.Count(told-maxChanges, "more node changed", "more nodes changed")))
	}
	if more := len(held.all) - maxChanges; more > 0 {
		lines = append(lines, fmt.Sprintf("%s: %s", after.Name, phrase.Count(more, "more cause changed", "more causes changed")))
	}
	return append(lines, newOf(before, after)...)
}

func (s *Status) byName() map[string]*Node {
	nodes := map[string]*Node{}
	if s != nil {
		for i := range s.Nodes {
			nodes[s.Nodes[i].Name] = &s.Nodes[i]
		}
	}
	return nodes
}

func newOf(before, after *Status) []string {
	var lines []string
	for _, circle := range after.Circles {
		if before == nil || !strings.Contains(strings.Join(before.Circles, "\n"), circle) {
			lines = append(lines, circle)
		}
	}
	return lines
}

// Brief returns the progress of a maintenance in one line.
func (s *Status) Brief() string {
	words := []string{fmt.Sprintf("stage %s, %s", s.Stage, s.State)}
	if s.Stage == v1alpha1.StageDrain {
		words = append(words, fmt.Sprintf("%d of %s drained", s.DrainedCount, phrase.Count(s.NodeCount, "node", "nodes")))
	} else if s.State != StateComplete {
		words = append(words, phrase.Count(s.NodeCount, "node", "nodes"))
	}
	if s.CompletedCount > 0 {
		words = append(words, fmt.Sprintf("%d given back", s.CompletedCount))
	}
	if s.PodsLeft > 0 {
		words = append(words, s.PodsText())
	}
	if s.PodsBlocked > 0 {
		words = append(words, fmt.Sprintf("%d blocked", s.PodsBlocked))
	}
	if s.Estimate.Known {
		words = append(words, s.Estimate.Text)
	}
	return strings.Join(words, ", ")
}

// PodsText returns the number of remaining pods as far as it is known.
func (s *Status) PodsText() string {
	text := phrase.Count(s.PodsLeft, "pod left", "pods left")
	if s.UnlistedCount > 0 {
		return "at least " + text
	}
	return text
}

func (n *Node) change(before *Node) string {
	switch {
	case before == nil:
		return ""
	case n.State.IsDrained() && before.State != n.State:
		return string(n.State)
	case n.State == StateComplete && before.State != StateComplete:
		return "given back"
	case n.PodsLeft != before.PodsLeft:
		return phrase.Count(n.PodsLeft, "pod left", "pods left")
	case n.State == StateWaiting && n.Message != before.Message:
		return n.Message
	}
	return ""
}

// inTheWay returns the blockers without those at work and foreign drains.
func (n *Node) inTheWay() []Blocker {
	var shown []Blocker
	for _, b := range n.Blockers {
		if !b.AtWork || b.Others() {
			shown = append(shown, b)
		}
	}
	return shown
}

// Others reports whether another tool drains the node, which blocks nothing.
func (b *Blocker) Others() bool { return b.Type == v1alpha1.BlockerForeignDrain }

func (b *Blocker) among(others []Blocker) bool {
	for i := range others {
		if others[i].Type == b.Type && others[i].Object == b.Object {
			return true
		}
	}
	return false
}

// name returns the object of a blocker, or its type if that is unknown.
func (b *Blocker) name() string {
	if b.Object == "" {
		return string(b.Type)
	}
	return b.Object
}

// Sentence returns the blocker with its pods, reason and suggestion.
func (b *Blocker) Sentence() string {
	if b.Others() {
		return strings.TrimSpace(fmt.Sprintf("also drained by another tool (%s): %s %s", b.Type, b.Message, b.Suggestion))
	}
	text := "blocked by "
	if b.PodCount > 0 {
		text = phrase.Count(b.PodCount, "pod", "pods") + " " + text
	}
	text += fmt.Sprintf("%s (%s): %s", b.name(), b.Type, b.Message)
	if b.Suggestion != "" {
		text += " What helps: " + b.Suggestion
	}
	return text
}

// Ended reports whether a maintenance changes no more without a request.
func (s *Status) Ended() bool {
	return s.State == StateComplete || s.Stage == v1alpha1.StageDrain && s.State == StateDrained
}

// Moves reports whether a maintenance is expected to progress.
func (s *Status) Moves() bool {
	return !s.Ended() && (s.Stage == v1alpha1.StageDrain || s.Stage == v1alpha1.StageComplete)
}
