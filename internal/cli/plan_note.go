package cli

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// notes tells what else people should know before.
func (p *planPrinter) notes() {
	var lost, nowhere, unreplaced, failing, objecting noteList
	p.each(func(pod *preflight.PodForecast) {
		if len(pod.DataLost) > 0 {
			lost.add(pod, strings.Join(pod.DataLost, ", "))
		}
		if r := pod.Replacement; r != nil && r.Unplaceable {
			nowhere.add(pod, r.Why)
		}
		if r := pod.Replacement; r != nil && r.JobFails {
			failing.add(pod, r.Why)
		}
		if pod.Owner == nil && pod.Type != "Static" && pod.Action != preflight.ActionSurge && pod.Outcome == preflight.OutcomeLeaves {
			unreplaced.add(pod, "it has no controller")
		}
		if pod.Objection != "" {
			objecting.add(pod, pod.Objection)
		}
	})
	p.part("Down until replaced, as all pods leave and no PodDisruptionBudget protects them:", outages(p.Outages))
	p.part("Data that is lost:", lost.lines())
	p.part("Replacements that fit nowhere:", nowhere.lines())
	p.part("Made again by nobody:", unreplaced.lines())
	p.part("Jobs that fail for good:", failing.lines())
	p.part("Ask to be left alone:", objecting.lines())
}

// outages names the applications that go down.
func outages(all []preflight.Outage) []string {
	lines := make([]string, len(all))
	for i := range all {
		o := &all[i]
		lines[i] = fmt.Sprintf("%s %s (%d pods)", o.Namespace, ownerWords(&o.Owner), o.PodCount)
	}
	return lines
}

// others tells who else drains the nodes.
func (p *planPrinter) others() {
	var lines []string
	for i := range p.Nodes {
		for _, note := range p.Nodes[i].Notes {
			lines = append(lines, excerpt.Line(note, 2*maxText))
		}
	}
	p.part("Others at these nodes:", lines)
}

// meetings tells which other maintenances the nodes have.
func (p *planPrinter) meetings() {
	var lines []string
	for _, m := range p.Meetings {
		lines = append(lines, excerpt.Line(m.Message, 2*maxText))
	}
	p.part("Other maintenances:", lines)
}

// unknowns tells what could not be read, and what an estimate is worth.
func (p *planPrinter) unknowns() {
	if len(p.Unread) > 0 {
		p.line("\nNot known:")
	}
	for _, u := range p.Unread {
		p.line("  %s: %s could not be read: %s", dash(u.Consequence), u.Kind, excerpt.Line(u.Why, maxText))
	}
	if p.wide && len(p.Ignores) > 0 {
		p.line("\nThis is an estimate. It leaves out:\n  %s", strings.Join(p.Ignores, "\n  "))
	}
}
