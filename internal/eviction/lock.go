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

// budgetLock is a lock of a budget as those know it who wait for its end; the zero
// budgetLock is no lock.
type budgetLock struct {
	budget types.NamespacedName
	// words are what it says of itself besides its end. They stay the same when it is
	// renewed.
	words string
	ends  time.Time
	// refusal is what those are told who may not go.
	refusal evacuation.Outcome
}

// lockOf finds the first locked one of the budgets. Now is the time of the dispatcher,
// which measures how long it waits.
func (d *Dispatcher) lockOf(budgets []*policyv1.PodDisruptionBudget, now time.Time) budgetLock {
	moment := d.options.Now()
	b, hold := budget.FirstLocked(budgets, moment, d.options.LongestLock)
	if b == nil {
		return budgetLock{}
	}
	endless := hold
	endless.Ends = time.Time{}
	return budgetLock{
		budget: client.ObjectKeyFromObject(b), words: endless.Describe(b), ends: now.Add(hold.Ends.Sub(moment)), refusal: evacuation.Barred(b, hold),
	}
}

func (b budgetLock) locked() bool { return b.words != "" }

// holds reports whether who was told of this budgetLock may go on waiting: it is the
// same lock, perhaps renewed, that a later look has found.
func (b budgetLock) holds(later budgetLock, now time.Time) bool {
	return b.budget == later.budget && b.words == later.words && now.Before(b.ends)
}

// changes returns how many changes of locks the dispatcher was told of.
func (d *Dispatcher) changes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lockChanges
}

// waitForLock has a pod wait for the end of a lock, outside of any queue. If the dispatcher was
// told of a change since before the look that has found the lock, it is unknown
// whether it is still there, and the pod has to look again. It returns who may
// try in the queue that it leaves.
func (d *Dispatcher) waitForLock(seen observation, now time.Time) (answer Answer, next []podKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.waitingPod(seen.attempt)
	left := p.budget
	d.refund(p)
	d.move(p, types.NamespacedName{})
	next = d.release(left)
	if d.lockChanges != seen.changes {
		return Answer{Again: time.Nanosecond}, next
	}
	p.failures = 0
	p.state, p.notBefore = waitingForLock, now.Add(safety)
	if seen.lock.ends.Before(p.notBefore) {
		p.notBefore = seen.lock.ends
	}
	// A lock that is renewed again and again is told again when what was told is over.
	if p.refusal.Type != v1alpha1.BlockerPDBLocked || !p.told.holds(seen.lock, now) {
		p.told = seen.lock
		p.note(seen.lock.refusal, now)
	}
	outcome := p.refusal.Outcome
	return Answer{Outcome: &outcome, Again: p.notBefore.Sub(now)}, next
}

// lockMoved learns of a budget whose lock may be another one now, or none. It returns
// those that wait for the one that they have seen and should look again, the oldest
// first. A lock that was only renewed wakes nobody.
func (d *Dispatcher) lockMoved(budget types.NamespacedName, lock budgetLock) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lockChanges++
	var waiting []*waitingPod
	for _, p := range d.waiting {
		stays := lock.locked() && p.told.words == lock.words && !lock.ends.Before(p.notBefore)
		if p.state == waitingForLock && p.told.budget == budget && !stays {
			p.state = fresh
			waiting = append(waiting, p)
		}
	}
	return oldestFirst(waiting)
}

func oldestFirst(waiting []*waitingPod) []podKey {
	slices.SortFunc(waiting, (*waitingPod).compare)
	keys := make([]podKey, len(waiting))
	for i, p := range waiting {
		keys[i] = p.key
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
