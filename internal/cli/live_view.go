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
	// frameLines are the lines of a frame besides the list: two above and two below it.
	frameLines = 4
	// barCells is how wide the bar of a node is.
	barCells = 12
	// widestName is how much of a name is shown.
	widestName = 32
)

// View implements tea.Model.
func (l *live) View() tea.View {
	drawn := tea.NewView(l.frame())
	drawn.AltScreen = true
	drawn.WindowTitle = "kubectl ebbtide watch"
	return drawn
}

// frame is the whole screen, no wider and no longer than that.
func (l *live) frame() string {
	if l.width <= 0 || l.height <= 0 {
		return ""
	}
	var lines []string
	if top := l.top(); top != nil {
		lines = l.storyLines(top)
	} else {
		lines = l.pictureLines()
	}
	if len(lines) > l.height {
		// The last line says how to leave.
		lines = append(lines[:max(0, l.height-1)], lines[len(lines)-1])
	}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], l.width, "…")
	}
	return strings.Join(lines, "\n")
}

func (l *live) pictureLines() []string {
	lines := []string{l.headline(), l.terminal.paint(bold, l.columns("NODE", "PROGRESS", "LEFT", "BLOCKED", "WHO BLOCKS, OR WHAT IT DOES"))}
	page := max(1, l.height-frameLines)
	first, last := l.cursor.part(len(l.rows), page)
	for i := first; i < last; i++ {
		mark := "  "
		if i == l.cursor.at {
			mark = "> "
		}
		lines = append(lines, mark+l.row(l.rows[i]))
	}
	for len(lines) < l.height-2 {
		lines = append(lines, "")
	}
	where := ""
	if len(l.rows) > page {
		where = fmt.Sprintf("%d-%d of %d lines. ", first+1, last, len(l.rows))
	}
	return append(lines, where+l.state(), "up, down: choose   enter: why   q: leave, it goes on")
}

// headline is all of it in a line.
func (l *live) headline() string {
	switch {
	case l.sight.maintenances == nil && l.sight.lost == nil:
		return "Asking the cluster…"
	case len(l.list.Items) == 0:
		return "No NodeMaintenance is at work"
	}
	left, blocked, nodes, drained := 0, 0, 0, 0
	for i := range l.list.Items {
		one := &l.list.Items[i]
		left, blocked = left+one.PodsLeft, blocked+one.PodsBlocked
		nodes, drained = nodes+one.NodeCount, drained+one.DrainedCount
	}
	return fmt.Sprintf("%s, %d/%d nodes drained, %s left, %d blocked", phrase.Count(len(l.list.Items), "NodeMaintenance"), drained, nodes, phrase.Count(left, "pod"), blocked)
}

// state is the time, and whether what is shown is news.
func (l *live) state() string {
	if l.sight.lost != nil {
		return l.terminal.paint(red, l.stamp()+" the connection is lost, and is tried again: "+l.sight.lost.Error())
	}
	if len(l.manager) > 0 {
		return l.terminal.paint(red, l.stamp()+" "+l.manager[0])
	}
	if len(l.list.Circles) > 0 {
		return l.terminal.paint(red, l.list.Circles[0])
	}
	return l.stamp()
}

// nameWidth is how wide names are shown.
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
	// The mark of the cursor takes two of the columns.
	text := l.columns(r.node.Name, bar(r.node), number(r.node.PodsLeft), number(r.node.PodsBlocked), doing(r.node))[2:]
	return l.terminal.paintState(r.node.State, text)
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// bar is how much of what had to leave has left since somebody watches.
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

// doing is who blocks, most important first, or else what the node does.
func doing(node *view.Node) string {
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

// storyLines are why something is as it is, and the pods that can be asked about.
func (l *live) storyLines(s *story) []string {
	title := "Why " + s.about.kind + "/" + s.about.name
	if s.about.namespace != "" {
		title = "Why " + s.about.kind + "/" + s.about.namespace + "/" + s.about.name
	}
	lines := []string{l.terminal.paint(bold, title), ""}
	all := s.text(l.width)
	page := max(1, l.height-frameLines)
	first, last := s.cursor.part(len(all), page)
	for i := first; i < last; i++ {
		mark := "  "
		if i == s.cursor.at && len(s.pods) > 0 {
			mark = "> "
		}
		lines = append(lines, mark+all[i])
	}
	for len(lines) < l.height-2 {
		lines = append(lines, "")
	}
	keys := "up, down: scroll   esc: back   q: leave, it goes on"
	if len(s.pods) > 0 {
		keys = "up, down: choose   enter: why of a pod   esc: back   q: leave, it goes on"
	}
	return append(lines, l.state(), keys)
}

// text are the lines of a story as wide as a screen; pods come last, one a line.
func (s *story) text(width int) []string {
	if s.wait {
		return []string{"Asking the cluster…"}
	}
	var all []string
	for _, line := range s.lines {
		all = append(all, strings.Split(ansi.Wrap(line, max(10, width-2), ""), "\n")...)
	}
	if len(s.pods) > 0 {
		all = append(all, "", "Pods that were asked to leave:")
	}
	for _, pod := range s.pods {
		all = append(all, fmt.Sprintf("%s/%s %s %s", pod.Namespace, pod.Name, pod.State, pod.Message))
	}
	return all
}

func (s *story) length(width int) int { return len(s.text(width)) }

// pod is the pod that the cursor is on.
func (s *story) pod(width int) (view.Pod, bool) {
	at := s.cursor.at - (s.length(width) - len(s.pods))
	if s.wait || at < 0 || at >= len(s.pods) {
		return view.Pod{}, false
	}
	return s.pods[at], true
}
