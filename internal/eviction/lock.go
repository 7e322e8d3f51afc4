package eviction

import (
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// barrier is a lock of a budget as those know it who wait for its end; the zero
// barrier is no lock.
type barrier struct {
	budget types.NamespacedName
	// words are what it says of itself besides its end. They stay the same when it is
	// renewed.
	words string
	ends  time.Time
	// refusal is what those are told who may not go.
	refusal evacuation.Outcome
}

// barrierOf finds the first locked one of the budgets.
func (r *Room) barrierOf(budgets []*policyv1.PodDisruptionBudget, now time.Time) barrier {
	b, hold := budget.FirstLocked(budgets, now, r.options.LongestLock)
	if b == nil {
		return barrier{}
	}
	endless := hold
	endless.Ends = time.Time{}
	return barrier{
		budget: client.ObjectKeyFromObject(b), words: endless.Describe(b), ends: hold.Ends, refusal: evacuation.Barred(b, hold),
	}
}

func (b barrier) locked() bool { return b.words != "" }

// holds reports whether who was told of this barrier may go on waiting: it is the
// same lock, perhaps renewed, that a later look has found.
func (b barrier) holds(later barrier, now time.Time) bool {
	return b.budget == later.budget && b.words == later.words && now.Before(b.ends)
}

// changes returns how many changes of locks the room was told of.
func (r *Room) changes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lockChanges
}

// bar has a visitor wait for the end of a lock, outside of any line. If the room was
// told of a change since before the look that has found the lock, nobody knows
// whether it is still there, and the visitor has to look again. It returns who may
// try in the line that it leaves.
func (r *Room) bar(seen sighting, now time.Time) (answer Answer, next []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guest(seen.visit)
	left := g.budget
	r.refund(g)
	r.move(g, types.NamespacedName{})
	next = r.release(left)
	if r.lockChanges != seen.changes {
		return Answer{Again: time.Nanosecond}, next
	}
	g.failures = 0
	g.standing, g.notBefore = barred, now.Add(safety)
	if seen.lock.ends.Before(g.notBefore) {
		g.notBefore = seen.lock.ends
	}
	// A lock that is renewed again and again is told again when what was told is over.
	if g.refusal.Type != v1alpha1.BlockerPDBLocked || !g.told.holds(seen.lock, now) {
		g.told = seen.lock
		g.note(seen.lock.refusal, now)
	}
	outcome := g.refusal.Outcome
	return Answer{Outcome: &outcome, Again: g.notBefore.Sub(now)}, next
}

// unbar is told of a budget whose lock may be another one now, or none. It returns
// those that wait for the one that they have seen and should look again, the oldest
// first. A lock that was only renewed wakes nobody.
func (r *Room) unbar(budget types.NamespacedName, lock barrier) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lockChanges++
	var waiting []*guest
	for _, g := range r.guests {
		stays := lock.locked() && g.told.words == lock.words && !lock.ends.Before(g.notBefore)
		if g.standing == barred && g.told.budget == budget && !stays {
			g.standing = arriving
			waiting = append(waiting, g)
		}
	}
	return oldestFirst(waiting)
}

func oldestFirst(guests []*guest) []types.NamespacedName {
	slices.SortFunc(guests, (*guest).compare)
	keys := make([]types.NamespacedName, len(guests))
	for i, g := range guests {
		keys[i] = g.key
	}
	return keys
}

// lockChanged reports whether the lock of a budget may be another one now.
func lockChanged(old, now *policyv1.PodDisruptionBudget) bool {
	if old == nil {
		return true
	}
	before, had := old.Annotations[v1alpha1.LockAnnotation]
	after, has := now.Annotations[v1alpha1.LockAnnotation]
	return had != has || before != after
}
