package cli

import (
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
	p.outages()
	p.part("Data that is lost:", &lost)
	p.part("Replacements that fit nowhere:", &nowhere)
	p.part("Made again by nobody:", &unreplaced)
	p.part("Jobs that fail for good:", &failing)
	p.part("Ask to be left alone:", &objecting)
}

// outages tells which applications go down.
func (p *planPrinter) outages() {
	if len(p.Outages) > 0 {
		p.line("\nDown until replaced, as all pods leave and no PodDisruptionBudget protects them:")
	}
	for i := range p.Outages {
		if !p.wide && i == maxNotes {
			p.line("  and %d more, which -o wide tells", len(p.Outages)-maxNotes)
			return
		}
		p.line("  %s", outageWords(&p.Outages[i]))
	}
}

// others tells who else drains the nodes.
func (p *planPrinter) others() {
	told := 0
	for i := range p.Nodes {
		for _, note := range p.Nodes[i].Notes {
			switch {
			case told == 0:
				p.line("\nOthers at these nodes:")
			case !p.wide && told == maxNotes:
				p.line("  and more, which -o wide tells")
				return
			}
			told++
			p.line("  %s", excerpt.Line(note, 2*maxText))
		}
	}
}

// meetings tells which other maintenances the nodes have.
func (p *planPrinter) meetings() {
	if len(p.Meetings) > 0 {
		p.line("\nOther maintenances:")
	}
	for i, m := range p.Meetings {
		if !p.wide && i == maxNotes {
			p.line("  and %d more, which -o wide tells", len(p.Meetings)-maxNotes)
			return
		}
		p.line("  %s", excerpt.Line(m.Message, 2*maxText))
	}
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
