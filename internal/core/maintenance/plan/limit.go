package plan

import (
	"cmp"
	"slices"

	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// limits finds, for each maintenance in Drain on a node, which one keeps the target behind and
// which one has brought it ahead. Plans are compared by pod type, priority and selector; those
// with selectors may do both to each other.
func (p *Plans) limits(n *Node, d *NodePlan) {
	set := d.Target.Set
	var atTop []*Position
	for _, one := range n.Drains {
		if at := p.position(one); set.AtTop(at.entry) {
			atTop = append(atTop, at)
		}
	}
	for place, one := range n.Drains {
		at := p.position(one)
		if missing := p.notCovered(at.own, set); len(missing) > 0 {
			d.Progress[place].Limiter = p.limiterOf(d.Ruling, at, atTop, missing)
		}
		d.Progress[place].ForwardedBy = p.forwarderOf(set, one)
	}
}

// notCovered returns the entries that another set does not cover, cached for all nodes.
func (p *Plans) notCovered(set, other drainplan.Set) []drainplan.Entry {
	key := [2]string{set.Key(), other.Key()}
	known, found := p.compared[key]
	if !found {
		known = set.NotCoveredBy(other)
		p.compared[key] = known
	}
	return known
}

func (p *Plans) covers(set, target drainplan.Set, entries []drainplan.Entry) bool {
	missing := p.notCovered(target, set)
	return slices.ContainsFunc(entries, func(e drainplan.Entry) bool { return !slices.ContainsFunc(missing, e.Same) })
}

// limiterOf returns which position keeps the target of the node behind a maintenance: the oldest
// at the last entry of the target, else the ruling one. It is always less than the one that it
// limits, and has not reached what that one has.
func (p *Plans) limiterOf(ruling, limited *Position, atTop []*Position, missing []drainplan.Entry) *Position {
	for _, at := range atTop {
		if at.compare(limited) < 0 && !p.covers(at.own, limited.own, missing) {
			return at
		}
	}
	return ruling
}

// forwarderOf returns the name of the older maintenance that has brought the target of a node
// ahead of a younger one; empty if none has. The younger one is forwarded once the target covers
// more than it has reached, because it joined late or orders its selectors differently, until it
// has caught up. A target that it reached itself before new pods or nodes set it back, or that is
// left of finished drains, is its own.
func (p *Plans) forwarderOf(target drainplan.Set, one *Drain) string {
	at, known := p.position(one), one.FastForwardedBy
	var ahead []drainplan.Entry
	for _, e := range p.notCovered(target, at.own) {
		if e.Depth() <= at.Plan.Depth() && (known != "" || !p.covers(one.Past.Set, target, []drainplan.Entry{e})) {
			ahead = append(ahead, e)
		}
	}
	if len(ahead) == 0 {
		return ""
	}
	older := slices.DeleteFunc(slices.Clone(one.Node.Drains), func(other *Drain) bool {
		return other.Maintenance.beganBefore(one.Maintenance) >= 0
	})
	if slices.ContainsFunc(older, func(other *Drain) bool { return other.Maintenance.Name == known }) {
		return known
	}
	return p.firstAhead(target, older, ahead)
}

// firstAhead returns which of these maintenances has brought the target of a node to the greatest
// of some entries: the oldest that is at one, else the least that has reached one, else the oldest
// that had reached one before new pods set it back.
func (p *Plans) firstAhead(target drainplan.Set, older []*Drain, ahead []drainplan.Entry) string {
	top := ahead[len(ahead)-1]
	greatest := slices.DeleteFunc(ahead, func(e drainplan.Entry) bool { return e.Compare(top) != 0 })
	var oldest, least, past *Position
	for _, one := range older {
		at := p.position(one)
		if slices.ContainsFunc(greatest, at.entry.Same) && (oldest == nil || at.beganBefore(oldest.Maintenance) < 0) {
			oldest = at
		}
		if p.covers(at.own, target, greatest) && (least == nil || at.compare(least) < 0) {
			least = at
		}
		reached := top.Depth() <= at.Plan.Depth() && p.covers(one.before(), target, greatest)
		if reached && (past == nil || at.beganBefore(past.Maintenance) < 0) {
			past = at
		}
	}
	if first := cmp.Or(oldest, least, past); first != nil {
		return first.Name
	}
	return ""
}

// before returns the target that the maintenance had reached before new pods, or by its deadline.
func (d *Drain) before() drainplan.Set {
	if d.DeadlineEntry < 0 {
		return d.Past.Set
	}
	return drainplan.Join(d.Past.Set, d.Maintenance.Plan.Cum(d.DeadlineEntry))
}

// beganBefore orders maintenances by the start of their drain, unstarted ones last, then by age.
func (m *Maintenance) beganBefore(other *Maintenance) int {
	return cmp.Or(
		cmp.Compare(ones(m.Began.IsZero()), ones(other.Began.IsZero())),
		m.Began.Compare(other.Began),
		cmp.Compare(m.Age, other.Age),
	)
}

// Awaited returns the nodes for whose pods a maintenance with pods left waits, by name. They are
// its own as long as some evacuate; else those that its limiters wait for. A limiter is always
// less than the one that it limits, so this ends; and the least maintenance of all rules every
// node that it is on, so it never ends empty.
func (p *Plans) Awaited(m *Maintenance) []*Drain {
	if known, found := p.awaited[m.Age]; found {
		return known
	}
	var awaited []*Drain
	var limiters []*Position
	for _, one := range m.Drains {
		progress := &p.Nodes[one.Node.Index].Progress[one.Place]
		if progress.Under > 0 || !one.Node.Read {
			awaited = append(awaited, one)
		}
		if progress.Beyond && !slices.Contains(limiters, progress.Limiter) {
			limiters = append(limiters, progress.Limiter)
		}
	}
	if len(awaited) == 0 {
		for _, limiter := range limiters {
			awaited = append(awaited, p.Awaited(limiter.Maintenance)...)
		}
		slices.SortStableFunc(awaited, func(a, b *Drain) int {
			return cmp.Or(cmp.Compare(a.Node.Index, b.Node.Index), cmp.Compare(a.Maintenance.Age, b.Maintenance.Age))
		})
		awaited = slices.CompactFunc(awaited, func(a, b *Drain) bool { return a.Node == b.Node })
	}
	p.awaited[m.Age] = awaited
	return awaited
}
