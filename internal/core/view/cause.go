package view

import (
	"strings"

	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// maxNamed is how many nodes are named with a cause that they share.
const maxNamed = 3

// causes are what holds nodes up now, or no longer, each once however many nodes it concerns.
type causes struct {
	all []*cause
	by  map[string]*cause
}

type cause struct {
	blocker Blocker
	// over is what is said of one that holds the nodes up no longer; empty while it does.
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

// from are a line for each of the first causes that begins with this node.
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

// compare adds what has come into the way of a node since before, and what has gone.
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
			c.add(n.Name, b, "no longer drained by others")
		default:
			c.add(n.Name, b, "no longer blocked by "+b.name())
		}
	}
}
