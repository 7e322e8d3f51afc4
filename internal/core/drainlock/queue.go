package drainlock

import (
	"fmt"
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// MaxEarlier caps the number of nodes counted ahead of another one.
const MaxEarlier = 100

// Precedes reports whether the node of a record goes before another one: it has waited longer for
// one of the same budgets.
func Precedes(r, other *v1alpha1.DrainRecord) bool {
	since, otherSince := r.Status.WaitStartTime, other.Status.WaitStartTime
	switch {
	case r.Name == other.Name, since == nil, r.Spec.Complete, Returned(r):
		return false
	case otherSince != nil && since.Equal(otherSince) && r.Name > other.Name, otherSince != nil && otherSince.Before(since):
		return false
	}
	_, shared := firstShared(r, other)
	return shared
}

func firstShared(r, other *v1alpha1.DrainRecord) (v1alpha1.BudgetReference, bool) {
	for _, b := range r.Spec.Budgets {
		if slices.Contains(other.Spec.Budgets, b) {
			return b, true
		}
	}
	return v1alpha1.BudgetReference{}, false
}

// Contends reports whether a node would take its locks now if no other node were ahead. A node that
// already holds a lock does not wait for others, as it may be on its way.
func Contends(s Snapshot) bool {
	s.Ahead = nil
	p := newPlanner(s)
	p.assess()
	return p.isContending()
}

// Obstructed reports whether something other than another node prevents the locks of a node.
func Obstructed(s Snapshot) bool {
	s.Ahead, s.Away = nil, nil
	p := newPlanner(s)
	p.assess()
	return len(p.obstacles) > 0
}

func (p *planner) isContending() bool {
	return p.isTaking() && !slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return p.budgets[b].own })
}

// yieldToAhead lets the node go first that has waited longer and could go as well. A node that
// cannot go delays no other, and one that does not go delays others for a minute.
func (p *planner) yieldToAhead() {
	since := p.status.YieldStartTime
	if p.status.YieldStartTime = nil; p.Ahead == nil || p.mutexOwn() || !p.isContending() {
		return
	}
	b, shared := firstShared(p.Record, p.Ahead)
	if !shared {
		return
	}
	if now := stamp(p.Now); since == nil || since.After(stampAfter(p.Now).Time) {
		since = &now
	}
	p.status.YieldStartTime = since
	if ends := since.Add(mutexDuration); p.Now.Before(ends) {
		p.obstacles = append(p.obstacles, obstacle{
			BudgetReference: b, kind: v1alpha1.BlockerPDBLocked, ofDrain: true, ends: ends,
			message: fmt.Sprintf("Node %s has waited longer and locks %s first.", p.Ahead.Name, named(b)),
		})
	}
}

// ahead returns the number of nodes that have waited longer, rounded so that one node that goes
// does not cause thousands of writes.
func (p *planner) ahead() int32 {
	const exact, step = 10, 10
	switch {
	case !p.hasUnconfirmed() || p.mutexOwn():
		return 0
	case p.Earlier <= exact:
		return int32(p.Earlier)
	default:
		return int32(min((p.Earlier+step-1)/step*step, MaxEarlier))
	}
}

func queued(ahead int32) string {
	switch {
	case ahead == 0:
		return ""
	case ahead <= 10:
		return phrase.Count(ahead, "node") + " ahead"
	case ahead < MaxEarlier:
		return fmt.Sprintf("about %d nodes ahead", ahead)
	default:
		return fmt.Sprintf("at least %d nodes ahead", ahead)
	}
}
