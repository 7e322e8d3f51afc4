package plan

import (
	"cmp"
	"slices"

	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// limits finds out, for each maintenance in Drain on a node, who keeps the target back
// and who has brought it ahead. Plans are compared by what they select, with pod type,
// priority and selector; those with selectors may do both to each other.
func (p *Plans) limits(n *Node, d *NodePlan) {
	set := d.Target.Set
	var atTop []*Position
	for _, one := range n.Drains {
		if its := p.position(one); set.AtTop(its.entry) {
			atTop = append(atTop, its)
		}
	}
	for place, one := range n.Drains {
		its := p.position(one)
		if missing := p.beyond(its.own, set); len(missing) > 0 {
			d.Progress[place].Limiter = p.limiterOf(d.Ruling, its, atTop, missing)
		}
		d.Progress[place].ForwardedBy = p.forwarderOf(set, one)
	}
}

// beyond are the entries of a set that another one does not cover. Most nodes ask the
// same.
func (p *Plans) beyond(set, other drainplan.Set) []drainplan.Entry {
	key := [2]string{set.Key(), other.Key()}
	known, found := p.compared[key]
	if !found {
		known = set.NotCoveredBy(other)
		p.compared[key] = known
	}
	return known
}

// covers returns true if a set covers one of some entries of a target.
func (p *Plans) covers(set, target drainplan.Set, entries []drainplan.Entry) bool {
	beyond := p.beyond(target, set)
	return slices.ContainsFunc(entries, func(e drainplan.Entry) bool { return !slices.ContainsFunc(beyond, e.Same) })
}

// limiterOf is who keeps the target of the node behind a maintenance: the oldest at the
// entry that the target has come to, else the ruling one. It is always less than the
// one that it limits, and has not come to what that one has come to.
func (p *Plans) limiterOf(ruling, limited *Position, atTop []*Position, missing []drainplan.Entry) *Position {
	for _, its := range atTop {
		if its.compare(limited) < 0 && !p.covers(its.own, limited.own, missing) {
			return its
		}
	}
	return ruling
}

// forwarderOf is the older maintenance that has brought the target of a node ahead of
// a younger one; empty if none has. That is so once the target has grown beyond what
// the younger one has come to, which joins or whose selectors are in another order,
// and until it has caught up. A target that it has left behind itself, because new
// pods or nodes took it back in its plan, is its own history, and so is what is left
// of drains that are over.
func (p *Plans) forwarderOf(target drainplan.Set, one *Drain) string {
	its, known := p.position(one), one.FastForwardedBy
	var ahead []drainplan.Entry
	for _, e := range p.beyond(target, its.own) {
		if e.Depth() <= its.Plan.Depth() && (known != "" || !p.covers(one.Past.Set, target, []drainplan.Entry{e})) {
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
	return p.whoBrought(target, older, ahead)
}

// whoBrought is the one of some maintenances that has brought the target of a node to
// the greatest of some entries: the oldest that is at one, else the least that has come
// so far, else the oldest that had come so far before new pods took it back.
func (p *Plans) whoBrought(target drainplan.Set, older []*Drain, ahead []drainplan.Entry) string {
	top := ahead[len(ahead)-1]
	greatest := slices.DeleteFunc(ahead, func(e drainplan.Entry) bool { return e.Compare(top) != 0 })
	var oldest, least, past *Position
	for _, one := range older {
		its := p.position(one)
		if slices.ContainsFunc(greatest, its.entry.Same) && (oldest == nil || its.beganBefore(oldest.Maintenance) < 0) {
			oldest = its
		}
		if p.covers(its.own, target, greatest) && (least == nil || its.compare(least) < 0) {
			least = its
		}
		came := top.Depth() <= its.Plan.Depth() && p.covers(one.before(), target, greatest)
		if came && (past == nil || its.beganBefore(past.Maintenance) < 0) {
			past = its
		}
	}
	if brought := cmp.Or(oldest, least, past); brought != nil {
		return brought.Name
	}
	return ""
}

// before is how far a maintenance has come on the node before new pods took it back in
// its plan, or because of its deadline.
func (d *Drain) before() drainplan.Set {
	if d.DeadlineEntry < 0 {
		return d.Past.Set
	}
	return drainplan.Join(d.Past.Set, d.Maintenance.Plan.Cum(d.DeadlineEntry))
}

// beganBefore orders maintenances by when they began to drain, those that begin now
// last, then by age: an older drain is one that began earlier.
func (m *Maintenance) beganBefore(other *Maintenance) int {
	return cmp.Or(
		cmp.Compare(ones(m.Began.IsZero()), ones(other.Began.IsZero())),
		m.Began.Compare(other.Began),
		cmp.Compare(m.Age, other.Age),
	)
}

// Awaited returns the nodes whose pods a maintenance with pods left waits for, by name.
// They are its own as long as some evacuate; else those that its limiters wait for. A
// limiter is always less than the one that it limits, so this ends; and the least
// maintenance of all rules every node that it is on, so it never ends empty.
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
