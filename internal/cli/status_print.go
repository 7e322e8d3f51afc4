package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// printStatusTable prints a line for each maintenance; leftOut complete ones are not listed, and detail
// is the command that shows one.
func printStatusTable(to io.Writer, list *view.StatusList, style textStyle, leftOut int, detail string) error {
	p := &printer{to: to}
	header := "NAME\tSTAGE\tSTATE\tDRAINED\tPODS LEFT\tBLOCKED\tETA\tREASON\tAGE"
	if style.wide {
		header = "NAME\tSTAGE\tSTATE\tDRAINED\tPODS LEFT\tBLOCKED\tRETAINED\tFINISH\tREASON\tCREATED\tSUMMARY"
	}
	var rows [][]string
	blocked := false
	for i := range list.Items {
		one := &list.Items[i]
		blocked = blocked || one.PodsBlocked > 0
		cells := []string{one.Name, string(one.Stage), string(one.State), fmt.Sprintf("%d/%d", one.DrainedCount, one.NodeCount), atLeast(one), fmt.Sprint(one.PodsBlocked)}
		if style.wide {
			cells = append(cells, fmt.Sprint(one.PodsRetained), absolute(one.Estimate.FinishTime), dash(one.Reason), absolute(&one.CreationTime), dash(one.Summary))
		} else {
			cells = append(cells, eta(one.Estimate, list.Time.Time), shorten(dash(one.Reason), 40), duration.HumanDuration(list.Time.Sub(one.CreationTime.Time)))
		}
		rows = append(rows, cells)
	}
	p.table(header, rows)
	if list.OmittedCount > 0 {
		p.line("and %d more", list.OmittedCount)
	}
	if leftOut > 0 && len(list.Items) > 0 {
		p.line("%d complete; use --all to show them", leftOut)
	}
	for _, circle := range list.Circles {
		p.line("%s", circle)
	}
	if blocked {
		p.line("See the blockers with\n  %s", detail)
	}
	p.cordons(list, style)
	if len(list.Rollouts) > 0 {
		p.line("")
		p.rollouts(list.Rollouts, list.Time.Time, style)
	}
	return p.err
}

// cordons prints the cordoned nodes, the longest first.
func (p *printer) cordons(list *view.StatusList, style textStyle) {
	if len(list.Cordoned) == 0 {
		return
	}
	most := style.most(shownNodes, wideNodes)
	var rows [][]string
	for _, c := range list.Cordoned[:min(most, len(list.Cordoned))] {
		since, by := "unknown", strings.Join(c.Maintenances, ", ")
		switch {
		case c.SinceTime != nil && style.wide:
			since = absolute(c.SinceTime)
		case c.SinceTime != nil:
			since = duration.HumanDuration(list.Time.Sub(c.SinceTime.Time))
		}
		if c.OmittedMaintenancesCount > 0 {
			by += fmt.Sprintf(" and %d more", c.OmittedMaintenancesCount)
		}
		rows = append(rows, []string{c.Node, since, by})
	}
	if more := max(0, len(list.Cordoned)-most) + list.OmittedCordonedCount; more > 0 {
		rows = append(rows, []string{"and " + phrase.Count(more, "more node")})
	}
	p.line("")
	p.table("CORDONED\tSINCE\tBY", rows)
}

func atLeast(one *view.Status) string {
	if one.UnlistedCount > 0 {
		return fmt.Sprintf("%d+", one.PodsLeft)
	}
	return fmt.Sprint(one.PodsLeft)
}

// eta returns an estimate for a column.
func eta(e view.Estimate, now time.Time) string {
	switch {
	case e.Known:
		return "~" + duration.HumanDuration(e.FinishTime.Sub(now))
	case e.Text == "":
		return "-"
	}
	return "unknown"
}

func absolute(t *metav1.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// shorten cuts a text to so many characters.
func shorten(text string, characters int) string {
	if runes := []rune(text); len(runes) > characters {
		return string(runes[:characters-1]) + "…"
	}
	return text
}

// Bounds of what is shown of a maintenance, and of what -o wide shows.
const (
	shownNodes, wideNodes       = 10, 100
	shownBlockers, wideBlockers = 5, 50
	shownPods, shownLocks       = 4, 10
)

// printStatus prints the progress of a maintenance, its blockers, nodes and locks.
func printStatus(to io.Writer, s *view.Status, now time.Time, style textStyle) error {
	p := &tree{printer: printer{to: to}, textStyle: style, now: now, said: map[string]bool{}}
	head := fmt.Sprintf("NodeMaintenance %s, stage %s", s.Name, s.Stage)
	if s.StageTime != nil {
		head += " since " + p.since(s.StageTime)
	}
	if s.Reason != "" {
		head += ": " + s.Reason
	}
	p.line("%s", head)
	p.line("%s", p.progress(s))
	if s.RequestedBy != "" {
		p.line("Requested by %s.", s.RequestedBy)
	}
	if s.Rollout != "" {
		p.line("Created by NodeRollout %s.", s.Rollout)
	}
	for _, circle := range s.Circles {
		p.line("%s", circle)
	}
	p.blockers(s)
	p.nodes(s)
	p.locks(s)
	return p.err
}

type tree struct {
	printer
	textStyle
	now time.Time
	// said are the reasons and messages that have been printed.
	said map[string]bool
}

// since returns the age of an event, or with -o wide its time.
func (p *tree) since(t *metav1.Time) string {
	if p.wide {
		return absolute(t)
	}
	return duration.HumanDuration(p.now.Sub(t.Time))
}

// progress returns the totals in a line.
func (p *tree) progress(s *view.Status) string {
	words := []string{p.state(s.State)}
	if s.NodeCount > 0 {
		words = append(words, fmt.Sprintf("%d/%d nodes drained", s.DrainedCount, s.NodeCount))
	}
	if s.CompletedCount > 0 {
		words = append(words, fmt.Sprintf("%d completed", s.CompletedCount))
	}
	if s.PodsLeft > 0 {
		words = append(words, s.PodsText())
	}
	if s.PodsBlocked > 0 {
		words = append(words, fmt.Sprintf("%d blocked", s.PodsBlocked))
	}
	if s.PodsRetained > 0 {
		words = append(words, fmt.Sprintf("%d retained", s.PodsRetained))
	}
	text := strings.Join(words, ", ") + "."
	switch {
	case s.Estimate.Known:
		text += " ETA: " + s.Estimate.Text + " (" + s.Estimate.Basis + ")."
	case s.Estimate.Text != "":
		text += " ETA: " + s.Estimate.Text + "."
	}
	return text
}

// state returns a state in its colour.
func (p *tree) state(state view.State) string {
	return p.terminal.paintState(state, string(state))
}

func (p *tree) blockers(s *view.Status) {
	var blocking, foreign []view.Blocker
	for _, b := range s.Blockers {
		switch {
		case b.Others():
			foreign = append(foreign, b)
		case !b.AtWork:
			blocking = append(blocking, b)
		}
	}
	p.blockersOf("Blockers:", blocking, s.OmittedBlockersCount)
	p.blockersOf("Other drains:", foreign, 0)
}

func (p *tree) blockersOf(heading string, all []view.Blocker, more int) {
	shown := all[:min(p.most(shownBlockers, wideBlockers), len(all))]
	if len(all) > 0 {
		p.line("\n%s", heading)
	}
	for i := range shown {
		b := &shown[i]
		p.line("  %s", p.blocker(b))
		p.line("    %s", b.Message)
		p.said[string(b.Type)+": "+b.Message] = true
		if b.Suggestion != "" {
			p.line("    What helps: %s", b.Suggestion)
		}
	}
	if more += len(all) - len(shown); more > 0 {
		p.line("  and %d more", more)
	}
}

// blocker describes the object of a blocker and what it affects.
func (p *tree) blocker(b *view.Blocker) string {
	text := string(b.Type)
	if b.Object != "" {
		text = b.Object + " (" + text + ")"
	}
	if b.PodCount > 0 {
		text += ": " + phrase.Count(b.PodCount, "pod")
	}
	if b.NodeCount > 1 {
		text += " on " + phrase.Count(b.NodeCount, "node")
	}
	if b.SinceTime != nil {
		text += ", since " + p.since(b.SinceTime)
	}
	return text
}

func (p *tree) locks(s *view.Status) {
	lines := make([]string, len(s.Locks))
	for i, lock := range s.Locks {
		text := lock.Budget + " is locked by " + lock.Holder
		if lock.Maintenance != "" && lock.Maintenance != s.Name {
			text += " (NodeMaintenance " + lock.Maintenance + ")"
		}
		if lock.AcquiredTime != nil {
			text += ", since " + p.since(lock.AcquiredTime)
		}
		if lock.EndTime != nil {
			text += ", until " + lock.EndTime.UTC().Format(time.RFC3339)
		}
		if lock.Reason != "" {
			text += ": " + lock.Reason
		}
		lines[i] = text
	}
	p.section("Locks:", lines, p.most(shownLocks, len(lines)), "")
}

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
