package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// statusStyle is how a status is printed.
type statusStyle struct {
	// wide has more columns, more nodes, and times that are absolute.
	wide     bool
	terminal terminal
	// leftOut is how many are not shown because they are over, tree what shows one.
	leftOut int
	tree    string
}

func printStatusTable(to io.Writer, list *view.StatusList, style statusStyle) error {
	p := &printer{to: to, gap: 3}
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
	if style.leftOut > 0 && len(list.Items) > 0 {
		p.line("%d complete: --all shows them", style.leftOut)
	}
	for _, circle := range list.Circles {
		p.line("%s", circle)
	}
	if blocked {
		p.line("Who blocks, and what helps: %s", style.tree)
	}
	p.cordons(list, style)
	return p.err
}

// cordons prints the nodes that are kept cordoned, the longest first.
func (p *printer) cordons(list *view.StatusList, style statusStyle) {
	if len(list.Cordoned) == 0 {
		return
	}
	most := shownNodes
	if style.wide {
		most = wideNodes
	}
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

// eta is an estimate in a column.
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

// printer prints lines and tables, and remembers the first error.
type printer struct {
	to io.Writer
	// gap is how many blanks are between columns.
	gap int
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.to, format+"\n", args...)
	}
}

// table prints rows under a heading, if there are any.
func (p *printer) table(heading string, rows [][]string) {
	if p.err != nil || len(rows) == 0 {
		return
	}
	table := tabwriter.NewWriter(p.to, 0, 8, p.gap, ' ', 0)
	fmt.Fprintln(table, heading)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	p.err = table.Flush()
}

// How much of a maintenance is shown, and how much with -o wide.
const (
	shownNodes, wideNodes       = 10, 100
	shownBlockers, wideBlockers = 5, 50
	shownPods, shownLocks       = 4, 10
)

// printStatus prints a maintenance: how far it is, who blocks, its nodes, its locks.
func printStatus(to io.Writer, s *view.Status, now time.Time, style statusStyle) error {
	p := &tree{printer: printer{to: to}, now: now, style: style, said: map[string]bool{}}
	head := fmt.Sprintf("NodeMaintenance %s, stage %s", s.Name, s.Stage)
	if s.StageTime != nil {
		head += " since " + p.since(s.StageTime)
	}
	if s.Reason != "" {
		head += ": " + s.Reason
	}
	p.line("%s", head)
	p.line("%s", p.progress(s))
	if s.StartedBy != "" {
		p.line("Started by %s.", s.StartedBy)
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
	now   time.Time
	style statusStyle
	// said are the reasons and messages that have been printed.
	said map[string]bool
}

// since is how long ago something began, or with -o wide when.
func (p *tree) since(t *metav1.Time) string {
	if p.style.wide {
		return absolute(t)
	}
	return duration.HumanDuration(p.now.Sub(t.Time))
}

// progress is how far it is, in a line.
func (p *tree) progress(s *view.Status) string {
	words := []string{p.state(s.State)}
	if s.NodeCount > 0 {
		words = append(words, fmt.Sprintf("%d/%d nodes drained", s.DrainedCount, s.NodeCount))
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
	if s.PodsRetained > 0 {
		words = append(words, phrase.Count(s.PodsRetained, "stays", "stay"))
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

// state is a state in its colour.
func (p *tree) state(state view.State) string {
	return p.style.terminal.paintState(state, string(state))
}

func (p *tree) blockers(s *view.Status) {
	most := shownBlockers
	if p.style.wide {
		most = wideBlockers
	}
	var shown, others []view.Blocker
	for _, b := range s.Blockers {
		switch {
		case b.Others():
			others = append(others, b)
		case !b.AtWork:
			shown = append(shown, b)
		}
	}
	p.blockersOf("Who blocks:", shown, most)
	if more := len(shown) - most + s.OmittedBlockersCount; more > 0 {
		p.line("  and %d more", more)
	}
	p.blockersOf("Who else drains:", others, most)
	if more := len(others) - most; more > 0 {
		p.line("  and %d more", more)
	}
}

func (p *tree) blockersOf(heading string, shown []view.Blocker, most int) {
	if len(shown) > 0 {
		p.line("")
		p.line("%s", heading)
	}
	for _, b := range shown[:min(most, len(shown))] {
		p.line("  %s", p.blocker(&b))
		p.line("    %s", b.Message)
		p.said[string(b.Type)+": "+b.Message] = true
		if b.Suggestion != "" {
			p.line("    What helps: %s", b.Suggestion)
		}
	}
}

// blocker is what blocks, and how much, without why.
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
	if len(s.Locks) > 0 {
		p.line("")
		p.line("Locks:")
	}
	for i, lock := range s.Locks {
		if i == shownLocks && !p.style.wide {
			p.line("  and %d more", len(s.Locks)-i)
			break
		}
		text := "  " + lock.Budget + " is locked by " + lock.Holder
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
		p.line("%s", text)
	}
}
