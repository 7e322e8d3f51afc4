package maintenance

import (
	"cmp"
	"slices"

	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// limits finds out, for each maintenance in Drain on a node, who keeps the target back
// and who has brought it ahead. Plans are compared by what they select, with pod type,
// priority and selector; those with selectors may do both to each other.
func (t *targeted) limits(n *targetedNode) {
	set := n.target.set
	var atTop []*position
	for _, one := range n.drains {
		if p := &t.positions[one.maintenance.age]; set.AtTop(p.entry) {
			atTop = append(atTop, p)
		}
	}
	for place, one := range n.drains {
		p := &t.positions[one.maintenance.age]
		if missing := t.beyond(p.own, set); len(missing) > 0 {
			n.progress[place].limiter = t.limiterOf(n, p, atTop, missing)
		}
		n.progress[place].forwardedBy = t.forwarderOf(n, one)
	}
}

// beyond are the entries of a set that another one does not cover. Most nodes ask the
// same.
func (t *targeted) beyond(set, other drainplan.Set) []drainplan.Entry {
	key := [2]string{set.Key(), other.Key()}
	known, found := t.compared[key]
	if !found {
		known = set.NotCoveredBy(other)
		t.compared[key] = known
	}
	return known
}

// covers returns true if a set covers one of some entries of a target.
func (t *targeted) covers(set, target drainplan.Set, entries []drainplan.Entry) bool {
	beyond := t.beyond(target, set)
	return slices.ContainsFunc(entries, func(e drainplan.Entry) bool { return !slices.ContainsFunc(beyond, e.Same) })
}

// limiterOf is who keeps the target of the node behind a maintenance: the oldest at the
// entry that the target has come to, else the ruling one. It is always less than the
// one that it limits, and has not come to what that one has come to.
func (t *targeted) limiterOf(n *targetedNode, limited *position, atTop []*position, missing []drainplan.Entry) *position {
	for _, p := range atTop {
		if p.compare(limited) < 0 && !t.covers(p.own, limited.own, missing) {
			return p
		}
	}
	return n.ruling
}

// forwarderOf is the older maintenance that has brought the target of a node ahead of
// a younger one; empty if none has. That is so once the target has grown beyond what
// the younger one has come to, which joins or whose selectors are in another order,
// and until it has caught up. A target that it has left behind itself, because new
// pods or nodes took it back in its plan, is its own history, and so is what is left
// of drains that are over.
func (t *targeted) forwarderOf(n *targetedNode, one *selection) string {
	p, known := &t.positions[one.maintenance.age], ""
	if one.observed != nil {
		known = one.observed.FastForwardedBy
	}
	var ahead []drainplan.Entry
	for _, e := range t.beyond(n.target.set, p.own) {
		if e.Depth() <= p.depth && (known != "" || !t.covers(one.previous.set, n.target.set, []drainplan.Entry{e})) {
			ahead = append(ahead, e)
		}
	}
	if len(ahead) == 0 {
		return ""
	}
	older := slices.DeleteFunc(slices.Clone(n.drains), func(other *selection) bool {
		return t.positions[other.maintenance.age].beganBefore(p) >= 0
	})
	if slices.ContainsFunc(older, func(other *selection) bool { return other.maintenance.name() == known }) {
		return known
	}
	return t.whoBrought(n, older, ahead)
}

// whoBrought is the one of some maintenances that has brought the target of a node to
// the greatest of some entries: the oldest that is at one, else the least that has come
// so far, else the oldest that had come so far before new pods took it back.
func (t *targeted) whoBrought(n *targetedNode, older []*selection, ahead []drainplan.Entry) string {
	top := ahead[len(ahead)-1]
	greatest := slices.DeleteFunc(ahead, func(e drainplan.Entry) bool { return e.Compare(top) != 0 })
	var oldest, least, past *position
	for _, one := range older {
		p := &t.positions[one.maintenance.age]
		if slices.ContainsFunc(greatest, p.entry.Same) && (oldest == nil || p.beganBefore(oldest) < 0) {
			oldest = p
		}
		if t.covers(p.own, n.target.set, greatest) && (least == nil || p.compare(least) < 0) {
			least = p
		}
		came := top.Depth() <= p.depth && t.covers(n.before(one), n.target.set, greatest)
		if came && (past == nil || p.beganBefore(past) < 0) {
			past = p
		}
	}
	if brought := cmp.Or(oldest, least, past); brought != nil {
		return brought.name()
	}
	return ""
}

// before is how far a maintenance has come on the node before new pods took it back in
// its plan, or because of its deadline.
func (t *targetedNode) before(one *selection) drainplan.Set {
	set := one.previous.set
	for _, late := range t.deadlines {
		if late.maintenance == one.maintenance {
			set = drainplan.Join(set, late.maintenance.plan.Cum(late.entry))
		}
	}
	return set
}

// beganBefore orders maintenances by when they began to drain, those that begin now
// last, then by age: an older drain is one that began earlier.
func (m *maintenance) beganBefore(other *position) int {
	return cmp.Or(
		cmp.Compare(ones(m.began.IsZero()), ones(other.began.IsZero())),
		m.began.Compare(other.began),
		cmp.Compare(m.age, other.age),
	)
}
