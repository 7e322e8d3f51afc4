package view

import (
	"strings"

	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const maxNamed = 3

// causes are blockers that came or went, each with all of its nodes.
type causes struct {
	all []*cause
	by  map[string]*cause
}

type cause struct {
	blocker Blocker
	// over describes a blocker that is gone.
	over  string
	nodes []string
}

func (c *causes) add(node string, b Blocker, over string) {
	key := over
	if key == "" {
		key = strings.Join([]string{string(b.Type), b.Object, b.Message, b.Suggestion}, "\n")
	}
	known := c.by[key]
	if known == nil {
		known = &cause{blocker: b, over: over}
		known.blocker.PodCount = 0
		c.all, c.by[key] = append(c.all, known), known
	}
	known.nodes = append(known.nodes, node)
	known.blocker.PodCount += b.PodCount
}

func (c *causes) from(node string) []string {
	var lines []string
	for _, one := range c.all[:min(len(c.all), maxChanges)] {
		if one.nodes[0] != node {
			continue
		}
		text := one.over
		if text == "" {
			text = one.blocker.Sentence()
		}
		lines = append(lines, phrase.Some(one.nodes, maxNamed)+": "+text)
	}
	return lines
}

// compare adds the blockers that came or went.
func (c *causes) compare(before, n *Node) {
	shown := n.inTheWay()
	for _, b := range shown[:min(len(shown), maxTold)] {
		if before == nil || !b.among(before.Blockers) {
			c.add(n.Name, b, "")
		}
	}
	if before == nil {
		return
	}
	for _, b := range before.inTheWay() {
		switch {
		case b.among(n.Blockers), n.State.IsDrained() && !b.Others():
		case b.Others():
			c.add(n.Name, b, "no longer drained by another tool")
		default:
			c.add(n.Name, b, "no longer blocked by "+b.name())
		}
	}
}
