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
// pods or nodes took it back in its plan, is its own history.
func (t *targeted) forwarderOf(n *targetedNode, one *selection) string {
	p := &t.positions[one.maintenance.age]
	if p.own.Includes(n.target.set) {
		return ""
	}
	ahead := slices.DeleteFunc(slices.Clone(n.target.set.Entries()), func(e drainplan.Entry) bool {
		return e.Depth() > p.depth || p.own.IncludesEntry(e)
	})
	if len(ahead) == 0 {
		return ""
	}
	if one.observed != nil && one.observed.FastForwardedBy != "" {
		return one.observed.FastForwardedBy
	}
	grown := slices.DeleteFunc(ahead, one.previous.set.IncludesEntry)
	if len(grown) == 0 {
		return ""
	}
	return t.whoBrought(n, p, grown)
}

// whoBrought is the oldest of those that are older than a maintenance and at the
// greatest of some entries, else the least that has come so far.
func (t *targeted) whoBrought(n *targetedNode, younger *position, grown []drainplan.Entry) string {
	top := grown[len(grown)-1]
	greatest := slices.DeleteFunc(slices.Clone(grown), func(e drainplan.Entry) bool { return e.Compare(top) != 0 })
	var oldest, least *position
	for _, one := range n.drains {
		p := &t.positions[one.maintenance.age]
		if p.beganBefore(younger) >= 0 {
			continue
		}
		if slices.ContainsFunc(greatest, p.entry.Same) && (oldest == nil || p.beganBefore(oldest) < 0) {
			oldest = p
		}
		if slices.ContainsFunc(greatest, p.own.IncludesEntry) && (least == nil || p.compare(least) < 0) {
			least = p
		}
	}
	switch {
	case oldest != nil:
		return oldest.name()
	case least != nil:
		return least.name()
	default:
		return ""
	}
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
