package maintenance

// side is where the target of a node stands, seen from a maintenance: below 0 it
// lags behind its entry, above 0 it is ahead.
func (t *targeted) side(n *targetedNode, one *selection) int {
	return n.target.set.Top().Compare(t.positions[one.maintenance.age].entry)
}

// limiter is who keeps the target of a node back: the oldest maintenance at the entry
// that the target has come to, else the ruling one. One without pods left limits nobody.
func (t *targeted) limiter(n *targetedNode) *position {
	for _, one := range n.drains {
		if p := &t.positions[one.maintenance.age]; !p.through && t.side(n, one) == 0 {
			return p
		}
	}
	return n.ruling
}

// limiterOf is who keeps the target of a node behind a maintenance.
func (t *targeted) limiterOf(n *targetedNode, one *selection) *position {
	if t.side(n, one) < 0 {
		return n.limiter
	}
	return n.ruling
}

// forward finds the older maintenances that have brought the target of a node ahead of
// others: the oldest at the entry that the target has come to, else the least that is
// further. There is none if no older one is as far: the target is history then.
func (t *targeted) forward(n *targetedNode) {
	var least *position
	found := false
	for place, one := range n.drains {
		p := &t.positions[one.maintenance.age]
		side := t.side(n, one)
		if side > 0 {
			n.progress[place].forwarder = least
			continue
		}
		switch {
		case found:
		case side == 0:
			least, found = p, true
		case least == nil || p.entry.Compare(least.entry) < 0:
			least = p
		}
	}
}
