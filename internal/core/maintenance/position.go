package maintenance

import (
	"encoding/json"
	"slices"
	"strconv"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// advance finds out how far each intent in Drain has come: to the first entry of
// its plan that still selects a counted pod on some of its sites. That is
// computed from what is running, never stored, so that it looks after new pods
// and new nodes by itself.
func (p *pass) advance() {
	for _, i := range p.intents {
		if i.stage != v1alpha1.StageDrain || i.invalid != nil {
			continue
		}
		first := i.first()
		i.idle = first == i.plan.Len()
		i.position = min(first, i.plan.Len()-1)
		i.entry = i.plan.Entry(i.position)
		i.own = i.plan.Cum(i.position)
	}
}

// first is the first position of the plan with a counted pod, or its length. A
// site whose pods are unknown may hold any pod.
func (i *intent) first() int {
	first := i.plan.Len()
	for _, one := range i.shares {
		if !one.site.known {
			return 0
		}
		for n := range one.site.pods {
			if pod := &one.site.pods[n]; pod.countedBy(i) {
				first = i.plan.First(pod.Subject, first)
			}
		}
		if first == 0 {
			break
		}
	}
	return first
}

// aim sets the target of every site in Drain: what the least of its intents has
// come to, joined with what any of them has recorded before.
func (p *pass) aim() {
	for _, s := range p.sites {
		if len(s.drains) == 0 {
			continue
		}
		ruling := s.drains[0]
		key := ""
		for _, one := range s.drains {
			one.observed, one.previous = p.previous(one)
			key += one.previous.key + "\n"
			if one.intent.compare(ruling.intent) < 0 {
				ruling = one
			}
		}
		s.ruling = ruling.intent
		key = strconv.Itoa(s.ruling.age) + " " + strconv.Itoa(s.depth) + "\n" + key
		known, found := p.targets[key]
		if !found {
			known = s.newTarget()
			p.targets[key] = known
		}
		s.target = known
	}
}

// newTarget joins what the ruling intent has come to with what was recorded. The
// lines of a status are kept where the set alone would not show them any more,
// so that no line of a status ever disappears. Pods that only a maintenance that
// has ended asked for may come back.
func (s *site) newTarget() target {
	set, lines := s.ruling.own, s.ruling.plan.Entries()
	for _, one := range s.drains {
		set = drainplan.Join(set, one.previous.set)
		lines = slices.Concat(lines, one.previous.entries)
	}
	return target{
		set:         set,
		full:        newRendering(set.Render(lines)),
		brief:       newRendering(set.Render(nil)),
		suppression: suppressionOf(set, s.depth),
	}
}

func newRendering(lines []v1alpha1.DrainPlanEntry) rendering {
	// Lines always marshal: a status is nothing but them.
	text, _ := json.Marshal(lines)
	return rendering{lines: lines, size: len(text)}
}

// written is the target as a list of this detail shows it.
func (t target) written(d detail) rendering {
	if d.brief {
		return t.brief
	}
	return t.full
}

// parsedTargets are drainTargets read back from a status.
type parsedTargets struct {
	key     string
	set     drainplan.Set
	entries []drainplan.Entry
}

// previous reads what the status of an intent says of a site.
func (p *pass) previous(one *share) (*v1alpha1.NodeMaintenanceNodeStatus, parsedTargets) {
	i := one.intent
	observed := i.observed[one.site.node.Name]
	var lines []v1alpha1.DrainPlanEntry
	switch {
	case observed != nil:
		lines = observed.DrainTargets
	case one.site.cordon.ledger.lists(i.name()):
		lines = standIn(i.object)
	}
	return observed, p.parse(lines)
}

// parse compiles equal targets once.
func (p *pass) parse(lines []v1alpha1.DrainPlanEntry) parsedTargets {
	key := keyOf(lines)
	parsed, found := p.parsed[key]
	if !found {
		entries := drainplan.Parse(lines)
		parsed = parsedTargets{key: key, set: drainplan.NewSet(entries...), entries: entries}
		p.parsed[key] = parsed
	}
	return parsed
}

// keyOf names targets as they are written.
func keyOf(lines []v1alpha1.DrainPlanEntry) string {
	var key []byte
	for n := range lines {
		key = append(key, lines[n].PodType...)
		key = append(key, ' ')
		key = strconv.AppendInt(key, int64(lines[n].PodPriority), 10)
		if selector := lines[n].PodSelector; selector != nil {
			key = append(key, selector.String()...)
		}
		key = append(key, ';')
	}
	return string(key)
}
