package cli

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// nodes prints those that are not drained: nodes of which the same is to be said in one line,
// and why pods stay once for all nodes.
func (p *tree) nodes(s *view.Status) {
	most := shownNodes
	if p.style.wide {
		most = wideNodes
	}
	var drained []string
	groups, stays := newTexts(), newTexts()
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if node.State == view.StateDrained && node.PodsRetained == 0 {
			drained = append(drained, node.Name)
			continue
		}
		text := p.node(node)
		if len(node.Pods) > 0 {
			groups.add(text+node.Name, text, node.Name).node = node
		} else {
			groups.add(text, text, node.Name)
		}
		for n := range node.Retained {
			b := &node.Retained[n]
			stays.add(string(b.Type)+b.Message, b.Message, b.Object).pods += b.PodCount
		}
	}
	p.groups(groups, most, s.OmittedNodesCount+s.UnlistedCount)
	p.stays(stays)
	if len(drained) > 0 {
		if len(groups.all) == 0 {
			p.line("")
		}
		p.line("Drained: %s", phrase.Some(drained, most))
	}
}

func (p *tree) groups(groups *texts, most, more int) {
	if len(groups.all) > 0 {
		p.line("")
		p.line("Nodes:")
	}
	for n, one := range groups.all {
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

func (p *tree) stays(stays *texts) {
	if len(stays.all) > 0 {
		p.line("")
		p.line("Stays:")
	}
	most := shownPods
	if p.style.wide {
		most = wideNodes
	}
	for _, one := range stays.all[:min(most, len(stays.all))] {
		p.line("  %s: %s. %s", phrase.Some(one.names, 1), phrase.Count(one.pods, "pod"), one.text)
	}
	if more := len(stays.all) - most; more > 0 {
		p.line("  and %s", phrase.Count(more, "more reason"))
	}
}

// texts are names of which the same is to be said, in the order of the first of each.
type texts struct {
	all []*sharedText
	by  map[string]*sharedText
}

type sharedText struct {
	text  string
	names []string
	pods  int
	// node is the one that it is about, if its pods are told; nil otherwise.
	node *view.Node
}

func newTexts() *texts { return &texts{by: map[string]*sharedText{}} }

func (t *texts) add(key, text, name string) *sharedText {
	one := t.by[key]
	if one == nil {
		one = &sharedText{text: text}
		t.all, t.by[key] = append(t.all, one), one
	}
	one.names = append(one.names, name)
	return one
}

// node is what is said of a node, without its name and pods.
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
	most := shownPods
	if p.style.wide {
		most = len(node.Pods)
	}
	for i := range node.Pods[:min(most, len(node.Pods))] {
		p.pod(&node.Pods[i])
	}
	if more := node.PodsEvacuating - min(most, len(node.Pods)); more > 0 {
		p.line("    and %s", phrase.Count(more, "more pod"))
	}
}

// pod prints a pod. Of what has been said before only the reason is said again.
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
	if !p.style.wide {
		text = shorten(text, 150)
	}
	p.line("%s", text)
}
