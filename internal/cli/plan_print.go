package cli

import (
	"fmt"
	"io"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

const (
	// maxRows is of how many pods or nodes a screen tells each, and maxNotes how many
	// lines a part of it has, maxNotedPods how many pods
	// a line names.
	maxRows, maxNotes, maxNotedPods = 30, 8, 2
	// maxText is how much of a sentence is told, maxOwner of what a pod says of its owner.
	maxText, maxOwner = 400, 80
)

type planStyle struct {
	wide     bool
	terminal terminal
}

// planPrinter prints a forecast for people; the first error of a write ends it.
type planPrinter struct {
	*preflight.Forecast
	planStyle
	printer
	said map[string]bool // what holds pods up, which budgets need not say again
}

func printForecast(to io.Writer, f *preflight.Forecast, style planStyle) error {
	p := &planPrinter{Forecast: f, planStyle: style, printer: printer{to: to, gap: 2}, said: map[string]bool{}}
	p.line("%s", style.terminal.paint(verdictColour(f.Outcome), f.Verdict))
	if !p.wide && (len(f.Nodes) > 1 && f.Total.Pods > maxRows) {
		p.nodes()
	} else {
		p.pods()
	}
	p.blocked()
	p.budgets()
	p.notes()
	p.meetings()
	p.others()
	p.unknowns()
	return p.err
}

func verdictColour(o preflight.Outcome) colour {
	switch o {
	case preflight.OutcomeLeaves, preflight.OutcomeCompletes:
		return green
	case preflight.OutcomeBlocked:
		return red
	}
	return yellow
}

// pods tells each pod, in the order in which they leave.
func (p *planPrinter) pods() {
	for i := range p.Nodes {
		node := &p.Nodes[i]
		p.line("")
		if len(p.Nodes) > 1 {
			p.line("%s: %s", node.Name, nodeWords(node))
		}
		var rows [][]string
		for j := range node.Pods {
			pod := &node.Pods[j]
			if !p.wide && len(rows) == maxRows {
				rows = append(rows, []string{fmt.Sprintf("and %d more, which -o wide tells", len(node.Pods)-maxRows)})
				break
			}
			row := []string{
				wave(pod), pod.Namespace + "/" + pod.Name, ownerWords(pod.Owner), string(pod.Type), fmt.Sprint(pod.Priority),
				what(pod), successor(pod),
			}
			if p.wide {
				row = append(row, dash(excerpt.Line(because(pod), maxText)))
			}
			rows = append(rows, row)
		}
		heading := "WAVE\tPOD\tOWNER\tTYPE\tPRIORITY\tWHAT\tTHEN"
		if p.wide {
			heading += "\tWHY"
		}
		p.table(heading, rows)
	}
}

func wave(pod *preflight.PodForecast) string {
	if pod.Wave == 0 {
		return "-"
	}
	return fmt.Sprint(pod.Wave)
}

func ownerWords(o *preflight.Owner) string {
	if o == nil {
		return "-"
	}
	return excerpt.Line(o.Kind+"/"+o.Name, maxOwner)
}

// whats are the words for what is done to pods.
var whats = map[preflight.Action]string{
	preflight.ActionEvict: "evict", preflight.ActionSurge: "surge", preflight.ActionEvacuator: "evacuator", preflight.ActionDaemonSet: "delete",
	preflight.ActionStatic: "put aside", preflight.ActionDelete: "delete", preflight.ActionWait: "wait for completion", preflight.ActionNone: "nothing",
	preflight.ActionAlreadyLeaving: "already leaving", preflight.ActionKeep: "stays", preflight.ActionWithNode: "goes with the node",
}

// outcomes are the words for pods that do not just leave.
var outcomes = map[preflight.Outcome]string{
	preflight.OutcomeBlocked: "BLOCKED", preflight.OutcomeMayBeBlocked: "MAY BE BLOCKED", preflight.OutcomeWaits: "waits for others", preflight.OutcomeUnknown: "UNKNOWN",
}

func what(pod *preflight.PodForecast) string {
	text := whats[pod.Action]
	if worse := outcomes[pod.Outcome]; worse != "" {
		text += ", " + worse
	}
	return text
}

// successor is where the replacement of a pod goes.
func successor(pod *preflight.PodForecast) string {
	switch r := pod.Replacement; {
	case r == nil:
		return "-"
	case r.Node != "":
		return "to " + r.Node
	case r.Unplaceable:
		return "fits nowhere"
	}
	return "-"
}

// because is what there is to say about a pod.
func because(pod *preflight.PodForecast) string {
	var parts []string
	if pod.Blocker != nil {
		parts = append(parts, pod.Blocker.Message, pod.Blocker.Suggestion)
	}
	parts = append(parts, pod.Why)
	if pod.Replacement != nil && pod.Replacement.Node == "" {
		parts = append(parts, pod.Replacement.Why)
	}
	for _, lost := range pod.DataLost {
		parts = append(parts, "loses "+lost)
	}
	return strings.Join(nonempty(parts), "; ")
}

func nonempty(texts []string) (kept []string) {
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// nodes tells each node on which something is amiss, and counts the others.
func (p *planPrinter) nodes() {
	var rows [][]string
	quiet, more := 0, 0
	for i := range p.Nodes {
		node := &p.Nodes[i]
		c := &node.Count
		switch {
		case c.Blocked+c.MayBeBlocked+c.Wait+c.Unknown+c.Unplaceable+c.DataLost+c.Unreplaced == 0 && node.Outcome == preflight.OutcomeLeaves:
			quiet++
		case len(rows) == maxRows:
			more++
		default:
			rows = append(rows, numbers(node.Name, c.Pods, c.Leave, c.Blocked, c.MayBeBlocked, c.Wait, c.Unknown, c.Stay, c.Unplaceable, c.DataLost))
		}
	}
	p.line("")
	p.table("NODE\tPODS\tLEAVE\tBLOCKED\tMAYBE\tWAIT\tUNKNOWN\tSTAY\tNOWHERE\tDATA LOST", rows)
	if more > 0 {
		p.line("and %d more nodes with trouble, which -o wide tells", more)
	}
	if quiet > 0 {
		p.line("%s: all pods that have to leave do so", phrase.Count(quiet, "other node"))
	}
}

func numbers(name string, counts ...int) []string {
	row := []string{name}
	for _, n := range counts {
		row = append(row, fmt.Sprint(n))
	}
	return row
}

func nodeWords(node *preflight.NodeForecast) string {
	text := phrase.Count(node.Count.Pods, "pod")
	if node.Message != "" {
		text += "; " + excerpt.Line(node.Message, maxText)
	}
	return text
}

// part prints lines under a title, no more than fit a screen unless -o wide is given.
func (p *planPrinter) part(title string, lines []string) {
	if len(lines) > 0 {
		p.line("\n%s", title)
	}
	for i, line := range lines {
		if !p.wide && i == maxNotes {
			p.line("  and %d more, which -o wide tells", len(lines)-maxNotes)
			return
		}
		p.line("  %s", line)
	}
}

// noteList are sentences and the pods that they are about.
type noteList struct {
	texts []string
	of    map[string][]string
}

func (n *noteList) add(pod *preflight.PodForecast, text string) {
	if n.of == nil {
		n.of = map[string][]string{}
	}
	text = excerpt.Line(text, maxText)
	if len(n.of[text]) == 0 {
		n.texts = append(n.texts, text)
	}
	n.of[text] = append(n.of[text], pod.Namespace+"/"+pod.Name)
}

// lines are the sentences, each below the pods that it is about.
func (n *noteList) lines() []string {
	lines := make([]string, len(n.texts))
	for i, text := range n.texts {
		lines[i] = phrase.Some(n.of[text], maxNotedPods) + ": " + text
	}
	return lines
}

func (p *planPrinter) each(visit func(pod *preflight.PodForecast)) {
	for i := range p.Nodes {
		for j := range p.Nodes[i].Pods {
			visit(&p.Nodes[i].Pods[j])
		}
	}
}

// blocked tells who does not leave, and what helps.
func (p *planPrinter) blocked() {
	var never, perhaps, unknown noteList
	p.each(func(pod *preflight.PodForecast) {
		text := because(pod)
		if pod.Blocker != nil {
			p.said[pod.Blocker.Message] = true
			text = strings.Join(nonempty([]string{pod.Blocker.Message, pod.Blocker.Suggestion}), " ")
		}
		switch pod.Outcome {
		case preflight.OutcomeBlocked:
			never.add(pod, text)
		case preflight.OutcomeMayBeBlocked:
			perhaps.add(pod, text)
		case preflight.OutcomeUnknown:
			unknown.add(pod, text)
		}
	})
	p.part("Would not leave:", never.lines())
	p.part("May not leave:", perhaps.lines())
	p.part("Nobody knows whether they leave:", unknown.lines())
}

// budgets tells which budgets matter.
func (p *planPrinter) budgets() {
	lines := make([]string, len(p.Budgets))
	for i := range p.Budgets {
		b := &p.Budgets[i]
		lines[i] = fmt.Sprintf("pdb/%s -n %s %s %s", b.Name, b.Namespace, effects[b.Effect], phrase.Count(b.PodCount, "pod"))
		if why := excerpt.Line(strings.Join(nonempty([]string{b.Why, b.Suggestion}), " "), 2*maxText); why != "" && !p.said[b.Why] {
			lines[i] += ": " + why
		}
	}
	p.part("Budgets:", lines)
}

var effects = map[preflight.BudgetEffect]string{
	preflight.BudgetSlows: "slows", preflight.BudgetHolds: "holds up", preflight.BudgetNever: "never allows the eviction of",
	preflight.BudgetSeveral: "is not the only one of", preflight.BudgetLocked: "is locked, with",
}

// podNames are the pods that would leave.
func podNames(f *preflight.Forecast) string {
	var names []string
	for i := range f.Nodes {
		for _, pod := range f.Nodes[i].Pods {
			if pod.Wave > 0 {
				names = append(names, "pod/"+pod.Name)
			}
		}
	}
	return strings.Join(names, "\n")
}
