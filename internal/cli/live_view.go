package cli

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
)

const (
	// frameLines are the two lines above and the two below a list.
	frameLines = 4
	// barCells is the width of a progress bar.
	barCells = 12
	// widestName bounds the width of names.
	widestName = 32
)

// View implements tea.Model.
func (l *live) View() tea.View {
	drawn := tea.NewView(l.frame())
	drawn.AltScreen = true
	drawn.WindowTitle = "kubectl ebbtide watch"
	return drawn
}

// frame returns the screen, cut to its size.
func (l *live) frame() string {
	if l.width <= 0 || l.height <= 0 {
		return ""
	}
	var lines []string
	if top := l.top(); top != nil {
		lines = l.explanationLines(top)
	} else {
		lines = l.listLines()
	}
	if len(lines) > l.height {
		// The last line has the keys.
		lines = append(lines[:max(0, l.height-1)], lines[len(lines)-1])
	}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], l.width, "…")
	}
	return strings.Join(lines, "\n")
}

func (l *live) listLines() []string {
	rows := make([]string, len(l.rows))
	for i := range l.rows {
		rows[i] = l.row(l.rows[i])
	}
	lines := []string{l.headline(), l.terminal.paint(bold, l.columns("NODE", "PROGRESS", "LEFT", "BLOCKED", "BLOCKERS OR STATUS"))}
	lines, position := l.scrolled(lines, rows, &l.cursor, true)
	return append(lines, position+l.state(), "up, down: select   enter: explain   q: quit (the drain continues)")
}

// scrolled appends the visible part of a list up to the last two lines of the screen, and returns the
// position if a part is hidden.
func (l *live) scrolled(lines, list []string, cursor *scroll, marked bool) (frame []string, position string) {
	page := max(1, l.height-frameLines)
	first, last := cursor.visible(len(list), page)
	for i := first; i < last; i++ {
		mark := "  "
		if i == cursor.at && marked {
			mark = "> "
		}
		lines = append(lines, mark+list[i])
	}
	for len(lines) < l.height-2 {
		lines = append(lines, "")
	}
	if len(list) > page {
		position = fmt.Sprintf("%d-%d of %d lines. ", first+1, last, len(list))
	}
	return lines, position
}

// headline returns the totals.
func (l *live) headline() string {
	switch {
	case l.sight.maintenances == nil && l.sight.lost == nil:
		return "Loading…"
	case len(l.list.Items) == 0:
		return "No active NodeMaintenances"
	}
	left, blocked, nodes, drained := 0, 0, 0, 0
	for i := range l.list.Items {
		one := &l.list.Items[i]
		left, blocked = left+one.PodsLeft, blocked+one.PodsBlocked
		nodes, drained = nodes+one.NodeCount, drained+one.DrainedCount
	}
	return fmt.Sprintf("%s, %d/%d nodes drained, %s left, %d blocked", phrase.Count(len(l.list.Items), "NodeMaintenance"), drained, nodes, phrase.Count(left, "pod"), blocked)
}

// state returns the time and the most important problem.
func (l *live) state() string {
	if l.sight.lost != nil {
		return l.terminal.paint(red, l.stamp()+" connection lost, retrying: "+l.sight.lost.Error())
	}
	if len(l.manager) > 0 {
		return l.terminal.paint(red, l.stamp()+" "+l.manager[0])
	}
	if len(l.list.Circles) > 0 {
		return l.terminal.paint(red, l.list.Circles[0])
	}
	return l.stamp()
}

// nameWidth returns the width of the names.
func (l *live) nameWidth() int {
	widest := len("NODE")
	for i := range l.rows {
		if node := l.rows[i].node; node != nil {
			widest = max(widest, ansi.StringWidth(node.Name))
		}
	}
	return min(widest, widestName)
}

func (l *live) columns(name, bar, left, blocked, what string) string {
	return fmt.Sprintf("    %s  %s %5s %8s  %s", pad(name, l.nameWidth()), pad(bar, barCells), left, blocked, what)
}

// pad cuts or fills a text to a width.
func pad(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

func (l *live) row(r row) string {
	if r.node == nil {
		text := r.status.Name + ": " + r.status.Brief()
		if r.status.Reason != "" {
			text += " (" + r.status.Reason + ")"
		}
		return l.terminal.paintState(r.status.State, text)
	}
	// The cursor takes two columns.
	text := l.columns(r.node.Name, bar(r.node), number(r.node.PodsLeft), number(r.node.PodsBlocked), activity(r.node))[2:]
	return l.terminal.paintState(r.node.State, text)
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// bar returns the progress of a node since the view was opened.
func bar(node *view.Node) string {
	full := 0
	switch all := node.PodsGone + node.PodsLeft; {
	case node.State.IsDrained():
		full = barCells
	case all > 0:
		full = node.PodsGone * barCells / all
	}
	return strings.Repeat("#", full) + strings.Repeat(".", barCells-full)
}

// activity returns the blockers, most important first, otherwise the status.
func activity(node *view.Node) string {
	var words []string
	for _, b := range node.Blockers {
		if b.AtWork && !(b.Others() && node.State == view.StateCompleting) {
			continue
		}
		word := string(b.Type)
		if b.Object != "" {
			word += " " + b.Object
		}
		words = append(words, word)
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case node.State == view.StateDrained && node.Message == "":
		return "Drained."
	case node.Message != "":
		return node.Message
	}
	return string(node.State)
}

// explanationLines shows an explanation, and the pods that can be explained next.
func (l *live) explanationLines(e *explanation) []string {
	title := "Why " + e.about.kind + "/" + e.about.name
	if e.about.namespace != "" {
		title = "Why " + e.about.kind + "/" + e.about.namespace + "/" + e.about.name
	}
	hasPods := len(e.pods) > 0
	lines, _ := l.scrolled([]string{l.terminal.paint(bold, title), ""}, e.text(l.width), &e.cursor, hasPods)
	keys := "up, down: scroll   esc: back   q: quit (the drain continues)"
	if hasPods {
		keys = "up, down: select   enter: explain a pod   esc: back   q: quit (the drain continues)"
	}
	return append(lines, l.state(), keys)
}

// text returns the lines wrapped to the screen; pods come last, one a line.
func (e *explanation) text(width int) []string {
	if e.isLoading {
		return []string{"Loading…"}
	}
	var all []string
	for _, line := range e.lines {
		all = append(all, strings.Split(ansi.Wrap(line, max(10, width-2), ""), "\n")...)
	}
	if len(e.pods) > 0 {
		all = append(all, "", "Evacuating pods:")
	}
	for _, pod := range e.pods {
		all = append(all, fmt.Sprintf("%s/%s %s %s", pod.Namespace, pod.Name, pod.State, pod.Message))
	}
	return all
}

func (e *explanation) length(width int) int { return len(e.text(width)) }

// pod returns the selected pod.
func (e *explanation) pod(width int) (view.Pod, bool) {
	at := e.cursor.at - (e.length(width) - len(e.pods))
	if e.isLoading || at < 0 || at >= len(e.pods) {
		return view.Pod{}, false
	}
	return e.pods[at], true
}
