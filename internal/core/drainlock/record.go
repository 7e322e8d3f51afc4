package drainlock

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const defaultLockTimeout = 300 * time.Second

// updateLocks brings the recorded locks in line with the budgets. A recorded lock that is missing
// was lost; one that is not recorded was taken just before a crash. A lock that is no longer needed
// is remembered until it is removed, but loses its confirmation.
func (p *planner) updateLocks() {
	recorded := map[v1alpha1.BudgetReference]v1alpha1.RecordedLock{}
	for _, lock := range p.status.Locks {
		if _, twice := recorded[lock.BudgetReference]; !twice {
			recorded[lock.BudgetReference] = lock
		}
	}
	needed := map[v1alpha1.BudgetReference]bool{}
	for _, b := range p.needs {
		needed[b] = true
		lock, known := recorded[b]
		switch one := p.budgets[b]; {
		case one.ours() && !known:
			recorded[b] = v1alpha1.RecordedLock{BudgetReference: b, AcquiredTime: stampAfter(p.Now)}
		case one.ours() && lock.AcquiredTime.After(stampAfter(p.Now).Time):
			lock.AcquiredTime = stampAfter(p.Now)
			recorded[b] = lock
		case !one.ours() && known:
			p.reportLost(b, one)
			delete(recorded, b)
		}
	}
	p.status.Locks = nil
	for b, lock := range recorded {
		if !needed[b] {
			lock.ConfirmedTime = nil
		}
		if needed[b] || p.budgets[b].own {
			p.status.Locks = append(p.status.Locks, lock)
		}
	}
	slices.SortFunc(p.status.Locks, func(a, b v1alpha1.RecordedLock) int { return compare(a.BudgetReference, b.BudgetReference) })
	p.findObstacles()
}

func (p *planner) reportLost(b v1alpha1.BudgetReference, one observedBudget) {
	why := "the annotation was removed"
	switch {
	case one.locked:
		why = excerpt.Of(one.lock.Describe(one.PodDisruptionBudget), maxQuote)
	case one.own:
		why = "it expired before it was renewed"
	}
	p.emit(event.LockLost(p.Record, fmt.Sprintf("Lost the lock of %s for the pods that stay on node %s: %s. It will be taken again when possible.",
		named(b), p.Record.Name, why)))
}

func (p *planner) emit(events []event.Event) {
	p.decision.Events = append(p.decision.Events, events...)
}

func (p *planner) findObstacles() {
	p.obstacles = nil
	for _, b := range p.needs {
		if o, found := p.obstacleFor(b); found {
			p.obstacles = append(p.obstacles, o)
		}
	}
}

// obstacleFor returns what prevents the lock of one budget. Before the node goes, a confirmed lock
// is only questioned by what the budget no longer allows.
func (p *planner) obstacleFor(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	o, found = p.obstacle(b)
	switch {
	case p.confirmed(b):
		return o, found && p.isStillUp() && (p.Live || p.status.Boots.WithdrawnTime != nil)
	case found:
		return o, true
	}
	for _, other := range []func(v1alpha1.BudgetReference) (obstacle, bool){p.elsewhere, p.refusal} {
		if o, found = other(b); found {
			return o, true
		}
	}
	return obstacle{BudgetReference: b, kind: v1alpha1.BlockerClockSkewed}, p.ClockSkewed
}

func (p *planner) lock(b v1alpha1.BudgetReference) *v1alpha1.RecordedLock {
	i, found := slices.BinarySearchFunc(p.status.Locks, b, func(lock v1alpha1.RecordedLock, b v1alpha1.BudgetReference) int {
		return compare(lock.BudgetReference, b)
	})
	if !found {
		return nil
	}
	return &p.status.Locks[i]
}

func (p *planner) confirmed(b v1alpha1.BudgetReference) bool {
	lock := p.lock(b)
	return lock != nil && lock.ConfirmedTime != nil
}

// deadline returns when the node stops waiting for its locks; false if it never does or has not
// started.
func (p *planner) deadline() (at time.Time, ends bool) {
	since := p.status.TimeoutStartTime
	if p.action() == v1alpha1.LockTimeoutWait || since == nil {
		return time.Time{}, false
	}
	return since.Add(p.timeout()), true
}

func (p *planner) timeout() time.Duration {
	if seconds := p.Record.Spec.InPlace.LockTimeoutSeconds; seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultLockTimeout
}

func (p *planner) action() v1alpha1.LockTimeoutAction {
	switch action := p.Record.Spec.InPlace.OnLockTimeout; action {
	case "", v1alpha1.LockTimeoutEvict:
		return v1alpha1.LockTimeoutEvict
	case v1alpha1.LockTimeoutDelete:
		return action
	default:
		return v1alpha1.LockTimeoutWait
	}
}

// updateTimeoutStart sets the start of the timeout. The timeout does not run while only other
// drains are ahead, since a node that waits in the queue of a pool blocks nobody. It does not run
// while the clock is skewed either.
func (p *planner) updateTimeoutStart() {
	since := p.status.TimeoutStartTime
	switch now := stamp(p.Now); {
	case !p.hasUnconfirmed(), p.waitsForDrainsOnly(), p.ClockSkewed:
		p.status.TimeoutStartTime = nil
	case since == nil || since.After(stampAfter(p.Now).Time):
		p.status.TimeoutStartTime = &now
	}
}

func (p *planner) waitsForDrainsOnly() bool {
	return len(p.obstacles) > 0 && !slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return !o.ofDrain })
}

// takeBack lets pods stay after all if their budget was given up while someone had locked it and
// that lock is gone. The spec must have left out the budget first.
func (p *planner) takeBack() {
	if p.Record.Spec.Complete {
		return
	}
	p.status.GivenUp = slices.DeleteFunc(p.status.GivenUp, func(given v1alpha1.GivenUpBudget) bool {
		if !given.Locked || slices.Contains(p.Record.Spec.Budgets, given.BudgetReference) || !p.isFree(given) {
			return false
		}
		p.emit(event.PodsStayAfterAll(p.Record, fmt.Sprintf("%s is no longer locked, so its remaining pods stay on node %s after all.",
			named(given.BudgetReference), p.Record.Name)))
		return true
	})
}

// isFree reports whether a budget allows the remaining pods for which it was given up to go down.
func (p *planner) isFree(given v1alpha1.GivenUpBudget) bool {
	one := p.budgets[given.BudgetReference]
	if one.PodDisruptionBudget == nil || one.locked {
		return false
	}
	var left, needed int32
	for _, uid := range given.PodUIDs {
		if pod := p.pods[uid]; pod != nil && isDeletable(pod) {
			left++
			if podclass.Ready(pod) {
				needed++
			}
		}
	}
	allowed, known := budget.Allowed(one.PodDisruptionBudget)
	return left > 0 && known && allowed >= needed
}

// giveUp stops waiting for budgets that could not be locked in time. Locks of other drains are
// never given up. Pods that their owner's lock keeps are not asked to leave, as they may stay once
// it is gone.
func (p *planner) giveUp() {
	deadline, ends := p.deadline()
	if len(p.obstacles) == 0 || !ends || p.Now.Before(deadline) {
		return
	}
	become := "are drained"
	if p.action() == v1alpha1.LockTimeoutDelete {
		become = "are deleted"
	}
	for _, o := range p.obstacles {
		if o.ofDrain || o.locked && p.action() == v1alpha1.LockTimeoutEvict {
			continue
		}
		p.status.GivenUp = append(p.status.GivenUp, v1alpha1.GivenUpBudget{
			BudgetReference: o.BudgetReference, Action: p.action(), GivenUpTime: stamp(p.Now), Message: excerpt.Of(o.message, maxMessage),
			PodUIDs: p.stayers(o.BudgetReference), Locked: o.locked,
		})
		p.emit(event.LockTimedOut(p.Record, fmt.Sprintf("%s could not be locked within %s, so its pods on node %s %s. %s",
			named(o.BudgetReference), p.timeout(), p.Record.Name, become, o.message)))
	}
	// A budget that is recreated again and again must not fill the record. A forgotten one is
	// waited for again.
	p.status.GivenUp = p.status.GivenUp[max(0, len(p.status.GivenUp)-MaxBudgets):]
}

func (p *planner) stayers(b v1alpha1.BudgetReference) []types.UID {
	var uids []types.UID
	for _, pod := range p.staying[b.UID] {
		uids = append(uids, pod.UID)
	}
	return uids
}

// dropOutdated releases all unconfirmed locks while the spec still contains a budget that was given
// up. If its pods must leave, two nodes could otherwise each wait to evict pods under a lock of the
// other.
func (p *planner) dropOutdated() {
	given := func(b v1alpha1.BudgetReference) bool {
		return slices.ContainsFunc(p.status.GivenUp, func(one v1alpha1.GivenUpBudget) bool { return one.BudgetReference == b })
	}
	p.outdated = !p.Record.Spec.Complete && slices.ContainsFunc(p.Record.Spec.Budgets, given)
	if !p.outdated {
		return
	}
	p.needs = slices.DeleteFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return !p.confirmed(b) })
	p.status.Locks = slices.DeleteFunc(p.status.Locks, func(lock v1alpha1.RecordedLock) bool { return lock.ConfirmedTime == nil })
	p.obstacles = nil
}

// dropUnconfirmed forgets unconfirmed locks while something is in the way, so that others can take
// them.
func (p *planner) dropUnconfirmed() {
	if len(p.obstacles) == 0 {
		return
	}
	p.status.Locks = slices.DeleteFunc(p.status.Locks, func(lock v1alpha1.RecordedLock) bool { return lock.ConfirmedTime == nil })
}

// confirm promises all locks at once: a partial promise would keep locks while the node waits for
// others.
func (p *planner) confirm() {
	if !p.isPromisable() || !p.Live || p.Now.Before(p.settledAt()) || p.isBusy() || !p.isPromiseVisible() {
		return
	}
	for _, b := range p.needs {
		if lock := p.lock(b); lock.ConfirmedTime == nil {
			at := stamp(p.Now)
			lock.ConfirmedTime = &at
		}
	}
}

func (p *planner) isMissing() bool {
	return slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return !p.budgets[b].ours() })
}

// hasUnconfirmed reports whether a lock is to be taken or confirmed.
func (p *planner) hasUnconfirmed() bool {
	return slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return !p.confirmed(b) })
}

// settledAt returns when no eviction can land any more that was admitted before a lock.
func (p *planner) settledAt() (at time.Time) {
	for _, b := range p.needs {
		lock := p.lock(b)
		if lock != nil && lock.ConfirmedTime == nil && lock.AcquiredTime.Add(Settle).After(at) {
			at = lock.AcquiredTime.Add(Settle)
		}
	}
	return at
}

// isBusy reports whether an own eviction is in flight that began before a lock.
func (p *planner) isBusy() bool {
	return slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool {
		return !p.confirmed(b) && p.Busy[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}]
	})
}
