package cli

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

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
