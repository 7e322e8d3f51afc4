package drainlock

import (
	"fmt"
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// MaxEarlier is up to how many nodes are counted that wait for longer than another one.
const MaxEarlier = 100

// Precedes reports whether the node of a record has its turn before another one: it
// waits for locks, for longer, and for some of the same.
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

// firstShared is the first budget that both records ask for.
func firstShared(r, other *v1alpha1.DrainRecord) (v1alpha1.BudgetReference, bool) {
	for _, b := range r.Spec.Budgets {
		if slices.Contains(other.Spec.Budgets, b) {
			return b, true
		}
	}
	return v1alpha1.BudgetReference{}, false
}

// Contends reports whether a node would take its locks now, were there no other. One
// that has some already goes on, and asks nobody: it may be on its way.
func Contends(s Snapshot) bool {
	s.Ahead = nil
	p := newPass(s)
	p.weigh()
	return p.contends()
}

// Obstructed reports whether something is in the way of the locks of a node that is
// seen without looking at others.
func Obstructed(s Snapshot) bool {
	s.Ahead, s.Away = nil, nil
	p := newPass(s)
	p.weigh()
	return len(p.obstacles) > 0
}

func (p *pass) contends() bool {
	return p.taking() && !slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return p.budgets[b].own })
}

// queueUp lets the node go first that waits for longer and could go as well. Nobody
// waits behind a node that cannot go, nor for long behind one that does not.
func (p *pass) queueUp() {
	since := p.status.YieldStartTime
	if p.status.YieldStartTime = nil; p.Ahead == nil || p.mutexOwn() || !p.contends() {
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
			BudgetReference: b, kind: v1alpha1.BlockerPDBLocked, turn: true, ends: ends,
			message: fmt.Sprintf("Node %s waits for longer, and locks %s first.", p.Ahead.Name, named(b)),
		})
	}
}

// ahead is how many nodes wait for longer, as exactly as is worth a write: one node
// that has had its turn must not have thousands written anew.
func (p *pass) ahead() int32 {
	const exact, step = 10, 10
	switch {
	case !p.unconfirmed() || p.mutexOwn():
		return 0
	case p.Earlier <= exact:
		return int32(p.Earlier)
	default:
		return int32(min((p.Earlier+step-1)/step*step, MaxEarlier))
	}
}

// queued says how many nodes are before a node; empty for the first one.
func queued(ahead int32) string {
	switch {
	case ahead == 0:
		return ""
	case ahead == 1:
		return "1 node waits for longer"
	case ahead <= 10:
		return fmt.Sprintf("%d nodes wait for longer", ahead)
	case ahead < MaxEarlier:
		return fmt.Sprintf("about %d nodes wait for longer", ahead)
	default:
		return fmt.Sprintf("%d nodes or more wait for longer", ahead)
	}
}
