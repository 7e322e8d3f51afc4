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

// budgetLock is a lock of a budget; the zero budgetLock is no lock.
type budgetLock struct {
	budget types.NamespacedName
	// description leaves out its end, and so stays the same when it is renewed.
	description string
	ends        time.Time
	// refusal is reported for the pods that wait.
	refusal evacuation.Outcome
}

// lockOf returns the lock of the first locked budget. Now is the time of the dispatcher, which
// measures how long pods wait.
func (d *Dispatcher) lockOf(budgets []*policyv1.PodDisruptionBudget, now time.Time) budgetLock {
	moment := d.options.Now()
	b, hold := budget.FirstLocked(budgets, moment, d.options.LongestLock)
	if b == nil {
		return budgetLock{}
	}
	endless := hold
	endless.Ends = time.Time{}
	return budgetLock{
		budget: client.ObjectKeyFromObject(b), description: endless.Describe(b), ends: now.Add(hold.Ends.Sub(moment)), refusal: evacuation.Barred(b, hold),
	}
}

func (b budgetLock) locked() bool { return b.description != "" }

// continues reports whether a later read found the same lock, perhaps renewed, before this one's end.
func (b budgetLock) continues(later budgetLock, now time.Time) bool {
	return b.budget == later.budget && b.description == later.description && now.Before(b.ends)
}

// changes returns the number of changes of locks that were reported.
func (d *Dispatcher) changes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lockChanges
}

// waitForLock lets a pod wait for the end of a lock, outside all queues, and returns the pods that
// may be tried in the queue that it leaves. If a lock changed since before the read, the pod has to
// be read again: the lock may be gone.
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
	// A lock that is renewed again and again is reported again when the reported end is over.
	if p.refusal.Type != v1alpha1.BlockerPDBLocked || !p.lock.continues(seen.lock, now) {
		p.lock = seen.lock
		p.note(seen.lock.refusal, now)
	}
	outcome := p.refusal.Outcome
	return Answer{Outcome: &outcome, Again: p.notBefore.Sub(now)}, next
}

// lockMoved notes that the lock of a budget may have changed, and returns the pods to try again, the
// oldest first. A lock that was only renewed wakes none.
func (d *Dispatcher) lockMoved(budget types.NamespacedName, lock budgetLock) []podKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lockChanges++
	var waiting []*waitingPod
	for _, p := range d.waiting {
		stays := lock.locked() && p.lock.description == lock.description && !lock.ends.Before(p.notBefore)
		if p.state == waitingForLock && p.lock.budget == budget && !stays {
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

// lockChanged reports whether the lock of a budget may have changed.
func lockChanged(old, now *policyv1.PodDisruptionBudget) bool {
	if old == nil {
		return true
	}
	before, had := old.Annotations[v1alpha1.LockAnnotation]
	after, has := now.Annotations[v1alpha1.LockAnnotation]
	return had != has || before != after
}
