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
		if !set.Includes(p.own) {
			n.progress[place].limiter = n.limiterOf(p, atTop)
		}
		n.progress[place].forwardedBy = t.forwarderOf(n, one)
	}
}

// limiterOf is who keeps the target of the node behind a maintenance: the oldest at the
// entry that the target has come to, else the ruling one. It is always less than the
// one that it limits, and has not come to what that one has come to.
func (t *targetedNode) limiterOf(limited *position, atTop []*position) *position {
	missing := slices.DeleteFunc(slices.Clone(limited.own.Entries()), t.target.set.IncludesEntry)
	for _, p := range atTop {
		if p.compare(limited) < 0 && !slices.ContainsFunc(missing, p.own.IncludesEntry) {
			return p
		}
	}
	return t.ruling
}

// forwarderOf is the older maintenance that has brought the target of a node ahead of
// a younger one; empty if none has. That is so once the target has grown beyond what
// the younger one has come to, which joins or whose selectors are in another order,
// and until it has caught up. A target that it has left behind itself, because new
// pods or nodes took it back in its plan, is its own history, and so is what is left
// of drains that are over.
func (t *targeted) forwarderOf(n *targetedNode, one *selection) string {
	p := &t.positions[one.maintenance.age]
	if p.own.Includes(n.target.set) {
		return ""
	}
	ahead := slices.DeleteFunc(slices.Clone(n.target.set.Entries()), func(e drainplan.Entry) bool {
		return e.Depth() > p.depth || p.own.IncludesEntry(e)
	})
	if one.observed == nil || one.observed.FastForwardedBy == "" {
		ahead = slices.DeleteFunc(ahead, one.previous.set.IncludesEntry)
	}
	if len(ahead) == 0 {
		return ""
	}
	older := slices.DeleteFunc(slices.Clone(n.drains), func(other *selection) bool {
		return t.positions[other.maintenance.age].beganBefore(p) >= 0
	})
	if one.observed != nil && slices.ContainsFunc(older, func(other *selection) bool {
		return other.maintenance.name() == one.observed.FastForwardedBy
	}) {
		return one.observed.FastForwardedBy
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
		if slices.ContainsFunc(greatest, p.own.IncludesEntry) && (least == nil || p.compare(least) < 0) {
			least = p
		}
		came := top.Depth() <= p.depth && slices.ContainsFunc(greatest, n.before(one).IncludesEntry)
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
