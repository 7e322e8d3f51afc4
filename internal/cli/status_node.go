package cli

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// nodes prints the nodes that are not drained. Nodes with the same text share a line, and so do
// retained pods with the same reason.
func (p *tree) nodes(s *view.Status) {
	var drained []string
	var left, retained grouped
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if node.State == view.StateDrained && node.PodsRetained == 0 {
			drained = append(drained, node.Name)
			continue
		}
		text := p.node(node)
		if len(node.Pods) > 0 {
			left.add(text+node.Name, text, node.Name).node = node
		} else {
			left.add(text, text, node.Name)
		}
		for n := range node.Retained {
			b := &node.Retained[n]
			retained.add(string(b.Type)+b.Message, b.Message, b.Object).pods += b.PodCount
		}
	}
	p.left(&left, s.OmittedNodesCount+s.UnlistedCount)
	lines := make([]string, len(retained.all))
	for i, one := range retained.all {
		lines[i] = fmt.Sprintf("%s: %s. %s", phrase.Some(one.names, 1), phrase.Count(one.pods, "pod"), one.text)
	}
	p.section("Retained:", lines, p.most(shownPods, wideNodes), "")
	if len(drained) > 0 {
		p.line("\nDrained: %s", phrase.Some(drained, p.most(shownNodes, wideNodes)))
	}
}

// left prints nodes with their pods.
func (p *tree) left(nodes *grouped, more int) {
	most := p.most(shownNodes, wideNodes)
	if len(nodes.all) > 0 {
		p.line("\nNodes:")
	}
	for n, one := range nodes.all {
		if n >= most {
			more += len(one.names)
			continue
		}
		p.line("  %s: %s", phrase.Some(one.names, most), one.text)
		if one.node != nil {
			p.pods(one.node)
		}
	}
	if more > 0 {
		p.line("  and %d more nodes", more)
	}
}

// node describes a node without its name and pods.
func (p *tree) node(node *view.Node) string {
	words := []string{p.state(node.State)}
	if node.PodsLeft > 0 {
		words = append(words, phrase.Count(node.PodsLeft, "pod")+" left")
	}
	if node.PodsBlocked > 0 {
		words = append(words, fmt.Sprintf("%d blocked", node.PodsBlocked))
	}
	text := strings.Join(words, ", ")
	if node.Message != "" && node.State != view.StateDrained {
		text += ". " + node.Message
	}
	return text
}

func (p *tree) pods(node *view.Node) {
	most := min(p.most(shownPods, len(node.Pods)), len(node.Pods))
	for i := range node.Pods[:most] {
		p.pod(&node.Pods[i])
	}
	if more := node.PodsEvacuating - most; more > 0 {
		p.line("    and %s", phrase.Count(more, "more pod"))
	}
}

// pod prints a pod. A message that was printed before is replaced by its reason.
func (p *tree) pod(pod *view.Pod) {
	text := fmt.Sprintf("    %s/%s %s", pod.Namespace, pod.Name, pod.State)
	if pod.SinceTime != nil {
		text += " since " + p.since(pod.SinceTime)
	}
	switch {
	case pod.Reason != "" && p.said[pod.Message]:
		text += ", " + pod.Reason
	case pod.Message != "":
		text += ", " + pod.Message
		p.said[pod.Message] = pod.Reason != ""
	}
	if !p.wide {
		text = shorten(text, 150)
	}
	p.line("%s", text)
}
