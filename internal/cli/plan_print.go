package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

const (
	// maxRows bounds the rows of pods or nodes, maxNotes the lines of a section, and maxNotedPods
	// the pods that a line names.
	maxRows, maxNotes, maxNotedPods = 30, 8, 2
	// maxText bounds a sentence, maxOwner the name of an owner.
	maxText, maxOwner = 400, 80

	wideHint = "; use -o wide to list them"
)

// planPrinter prints a forecast as text.
type planPrinter struct {
	*preflight.Forecast
	textStyle
	printer
	// said are the printed messages of blockers, which budgets need not repeat.
	said map[string]bool
}

func printForecast(to io.Writer, f *preflight.Forecast, style textStyle) error {
	p := &planPrinter{Forecast: f, textStyle: style, printer: printer{to: to}, said: map[string]bool{}}
	p.line("%s", style.terminal.paint(verdictColour(f.Outcome), f.Verdict))
	if !p.wide && (len(f.Nodes) > 1 && f.Total.Pods > maxRows) {
		p.nodes()
	} else {
		p.pods()
	}
	p.blocked()
	p.budgets()
	p.notes()
	p.waits()
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

// pods prints each pod, in the order in which they leave.
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
				rows = append(rows, []string{fmt.Sprintf("and %d more%s", len(node.Pods)-maxRows, wideHint)})
				break
			}
			row := []string{
				wave(pod), pod.Namespace + "/" + pod.Name, ownerWords(pod.Owner), string(pod.Type), fmt.Sprint(pod.Priority),
				actionOf(pod), successor(pod),
			}
			if p.wide {
				row = append(row, dash(excerpt.Line(because(pod), maxText)))
			}
			rows = append(rows, row)
		}
		heading := "WAVE\tPOD\tOWNER\tTYPE\tPRIORITY\tACTION\tREPLACEMENT"
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

// actions describes what is done to pods.
var actions = map[preflight.Action]string{
	preflight.ActionEvict: "evict", preflight.ActionSurge: "surge", preflight.ActionEvacuator: "evacuator", preflight.ActionDaemonSet: "delete",
	preflight.ActionStatic: "take down", preflight.ActionDelete: "delete", preflight.ActionWait: "wait for completion", preflight.ActionNone: "nothing",
	preflight.ActionAlreadyLeaving: "already leaving", preflight.ActionKeep: "stays", preflight.ActionWithNode: "goes with the node",
}

// outcomes describes pods that do not just leave.
var outcomes = map[preflight.Outcome]string{
	preflight.OutcomeBlocked: "BLOCKED", preflight.OutcomeMayBeBlocked: "MAY BE BLOCKED", preflight.OutcomeWaits: "waits for others", preflight.OutcomeUnknown: "UNKNOWN",
}

func actionOf(pod *preflight.PodForecast) string {
	text := actions[pod.Action]
	if worse := outcomes[pod.Outcome]; worse != "" {
		text += ", " + worse
	}
	return text
}

// successor returns where the replacement of a pod would run.
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

// because explains the outcome of a pod.
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

func nonempty(texts []string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// nodes prints each node with a problem, and counts the others.
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
		p.line("and %d more nodes with problems%s", more, wideHint)
	}
	if quiet > 0 {
		p.line("%s without problems", phrase.Count(quiet, "other node"))
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

// part prints lines below a title, as many as fit a screen unless -o wide is given.
func (p *planPrinter) part(title string, lines []string) {
	p.section(title, lines, p.most(maxNotes, len(lines)), wideHint)
}

func (p *planPrinter) each(visit func(pod *preflight.PodForecast)) {
	for i := range p.Nodes {
		for j := range p.Nodes[i].Pods {
			visit(&p.Nodes[i].Pods[j])
		}
	}
}

// blocked prints the pods that do not leave, with suggestions.
func (p *planPrinter) blocked() {
	by := map[preflight.Outcome]*grouped{preflight.OutcomeBlocked: {}, preflight.OutcomeMayBeBlocked: {}, preflight.OutcomeUnknown: {}}
	p.each(func(pod *preflight.PodForecast) {
		text := because(pod)
		if pod.Blocker != nil {
			p.said[pod.Blocker.Message] = true
			text = strings.Join(nonempty([]string{pod.Blocker.Message, pod.Blocker.Suggestion}), " ")
		}
		if group := by[pod.Outcome]; group != nil {
			note(group, pod, text)
		}
	})
	p.part("Would not leave:", by[preflight.OutcomeBlocked].lines())
	p.part("Might not leave:", by[preflight.OutcomeMayBeBlocked].lines())
	p.part("Unknown whether they leave:", by[preflight.OutcomeUnknown].lines())
}

// budgets prints the budgets that affect the drain.
func (p *planPrinter) budgets() {
	lines := make([]string, len(p.Budgets))
	for i := range p.Budgets {
		b := &p.Budgets[i]
		lines[i] = fmt.Sprintf("pdb/%s -n %s %s %s", b.Name, b.Namespace, effects[b.Effect], phrase.Count(b.PodCount, "pod"))
		if why := excerpt.Line(strings.Join(nonempty([]string{b.Why, b.Suggestion}), " "), 2*maxText); why != "" && !p.said[b.Why] {
			lines[i] += ": " + why
		}
	}
	p.part("PodDisruptionBudgets:", lines)
}

var effects = map[preflight.BudgetEffect]string{
	preflight.BudgetSlows: "slows", preflight.BudgetHolds: "blocks", preflight.BudgetNever: "never allows the eviction of",
	preflight.BudgetSeveral: "overlaps with others for", preflight.BudgetLocked: "is locked and blocks",
}

// podNames lists the pods that would leave.
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

// notes prints further consequences of the drain.
func (p *planPrinter) notes() {
	var lost, nowhere, unreplaced, failing, objecting grouped
	p.each(func(pod *preflight.PodForecast) {
		if len(pod.DataLost) > 0 {
			note(&lost, pod, strings.Join(pod.DataLost, ", "))
		}
		if r := pod.Replacement; r != nil && r.Unplaceable {
			note(&nowhere, pod, r.Why)
		}
		if r := pod.Replacement; r != nil && r.JobFails {
			note(&failing, pod, r.Why)
		}
		if pod.Owner == nil && pod.Type != "Static" && pod.Action != preflight.ActionSurge && pod.Outcome == preflight.OutcomeLeaves {
			note(&unreplaced, pod, "it has no controller")
		}
		if pod.Objection != "" {
			note(&objecting, pod, pod.Objection)
		}
	})
	p.part("Down until replaced, because all pods leave without a PodDisruptionBudget:", outages(p.Outages))
	p.part("Data that is lost:", lost.lines())
	p.part("Replacements that fit nowhere:", nowhere.lines())
	p.part("Not recreated:", unreplaced.lines())
	p.part("Jobs that fail permanently:", failing.lines())
	p.part("Annotated not to be disrupted:", objecting.lines())
}

// note adds a pod to those that a text is about.
func note(to *grouped, pod *preflight.PodForecast, text string) {
	text = excerpt.Line(text, maxText)
	to.add(text, text, pod.Namespace+"/"+pod.Name)
}

// outages lists the applications that would be down.
func outages(all []preflight.Outage) []string {
	lines := make([]string, len(all))
	for i := range all {
		o := &all[i]
		lines[i] = fmt.Sprintf("%s %s (%d pods)", o.Namespace, ownerWords(&o.Owner), o.PodCount)
	}
	return lines
}

// others prints other drains of the nodes.
func (p *planPrinter) others() {
	var lines []string
	for i := range p.Nodes {
		for _, note := range p.Nodes[i].Notes {
			lines = append(lines, excerpt.Line(note, 2*maxText))
		}
	}
	p.part("Other drains of these nodes:", lines)
}

// waits prints which nodes would wait for a NodeBudget.
func (p *planPrinter) waits() {
	var lines []string
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Waits != "" {
			lines = append(lines, excerpt.Line(n.Name+" for "+n.Waits, 2*maxText))
		}
	}
	p.part("Nodes that would wait:", lines)
}

// meetings prints the other maintenances of the nodes.
func (p *planPrinter) meetings() {
	var lines []string
	for _, m := range p.Meetings {
		lines = append(lines, excerpt.Line(m.Message, 2*maxText))
	}
	p.part("Other maintenances:", lines)
}

// unknowns prints what could not be read, and what the estimate ignores.
func (p *planPrinter) unknowns() {
	if len(p.Unread) > 0 {
		p.line("\nUnknown:")
	}
	for _, u := range p.Unread {
		p.line("  %s: %s could not be read: %s", dash(u.Consequence), u.Kind, excerpt.Line(u.Why, maxText))
	}
	if p.wide && len(p.Ignores) > 0 {
		p.line("\nThis is an estimate. It ignores:\n  %s", strings.Join(p.Ignores, "\n  "))
	}
}
