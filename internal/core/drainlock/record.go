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

// defaultLockTimeout is that of v1alpha1.InPlace.
const defaultLockTimeout = 300 * time.Second

// look brings the recorded locks to what the budgets bear. A lock that is needed
// and not there was lost; one that is there and not recorded was taken just before
// somebody died; one that is not needed any more is remembered until it is gone, and
// is no promise from now on: whoever needs it again has it confirmed again.
func (p *pass) look() {
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
			p.lose(b, one)
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
	p.oppose()
}

func (p *pass) lose(b v1alpha1.BudgetReference, one sight) {
	why := "its annotation was removed"
	switch {
	case one.locked:
		why = excerpt.Of(one.hold.Describe(one.PodDisruptionBudget), longestText)
	case one.own:
		why = "it had ended before it was renewed"
	}
	p.emit(event.LockLost(p.Record, fmt.Sprintf("The lock of %s for the pods that stay on node %s was lost, and is taken again as soon as it can be had: %s.",
		named(b), p.Record.Name, why)))
}

func (p *pass) emit(events []event.Event) { p.decision.Events = append(p.decision.Events, events...) }

// oppose finds what is in the way.
func (p *pass) oppose() {
	p.obstacles = nil
	for _, b := range p.needs {
		if o, found := p.opposes(b); found {
			p.obstacles = append(p.obstacles, o)
		}
	}
}

// opposes finds what is in the way of one budget. If its lock was confirmed, that is only
// what the budget does not allow any more before the node goes.
func (p *pass) opposes(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	o, found = p.obstacle(b)
	switch {
	case p.confirmed(b):
		return o, found && p.here() && (p.Live || p.status.Boots.WithdrawnTime != nil)
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

// lock returns what will be recorded of the lock of a budget.
func (p *pass) lock(b v1alpha1.BudgetReference) *v1alpha1.RecordedLock {
	i, found := slices.BinarySearchFunc(p.status.Locks, b, func(lock v1alpha1.RecordedLock, b v1alpha1.BudgetReference) int {
		return compare(lock.BudgetReference, b)
	})
	if !found {
		return nil
	}
	return &p.status.Locks[i]
}

func (p *pass) confirmed(b v1alpha1.BudgetReference) bool {
	lock := p.lock(b)
	return lock != nil && lock.ConfirmedTime != nil
}

// deadline is when the node stops to wait for its locks; false if it never does,
// or has not begun.
func (p *pass) deadline() (at time.Time, ends bool) {
	since := p.status.TimeoutStartTime
	if p.action() == v1alpha1.LockTimeoutWait || since == nil {
		return time.Time{}, false
	}
	return since.Add(p.timeout()), true
}

func (p *pass) timeout() time.Duration {
	if seconds := p.Record.Spec.InPlace.LockTimeoutSeconds; seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultLockTimeout
}

func (p *pass) action() v1alpha1.LockTimeoutAction {
	switch action := p.Record.Spec.InPlace.OnLockTimeout; action {
	case "", v1alpha1.LockTimeoutEvict:
		return v1alpha1.LockTimeoutEvict
	case v1alpha1.LockTimeoutDelete:
		return action
	default:
		return v1alpha1.LockTimeoutWait
	}
}

// runClock finds out since when the timeout counts. While nothing but the locks of
// other drains is in the way it does not, and begins anew afterwards: who waits for
// their turn, in a pool of any size, is in nobody's way. Nor does it while the clock is
// skewed: what was written down then would be worth nothing afterwards.
func (p *pass) runClock() {
	since := p.status.TimeoutStartTime
	switch now := stamp(p.Now); {
	case !p.unconfirmed(), p.inTurn(), p.ClockSkewed:
		p.status.TimeoutStartTime = nil
	case since == nil || since.After(stampAfter(p.Now).Time):
		p.status.TimeoutStartTime = &now
	}
}

// inTurn is true while only locks of other drains are in the way.
func (p *pass) inTurn() bool {
	return len(p.obstacles) > 0 && !slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return !o.turn })
}

// takeBack has pods stay after all whose budget was given up because somebody had
// locked it, and has not any more. The spec has to know before that it was given up.
func (p *pass) takeBack() {
	if p.Record.Spec.Complete {
		return
	}
	p.status.GivenUp = slices.DeleteFunc(p.status.GivenUp, func(given v1alpha1.GivenUpBudget) bool {
		if !given.Locked || slices.Contains(p.Record.Spec.Budgets, given.BudgetReference) || !p.free(given) {
			return false
		}
		p.emit(event.PodsStayAfterAll(p.Record, fmt.Sprintf("%s was given up because it was locked, and is free before its pods have left: they stay on node %s after all.",
			named(given.BudgetReference), p.Record.Name)))
		return true
	})
}

// free is true of a budget that allows what is left of the pods for which it was
// given up to go down.
func (p *pass) free(given v1alpha1.GivenUpBudget) bool {
	one := p.budgets[given.BudgetReference]
	if one.PodDisruptionBudget == nil || one.locked {
		return false
	}
	var left, needed int32
	for _, uid := range given.PodUIDs {
		if pod := p.pods[uid]; pod != nil && deletable(pod) {
			left++
			if podclass.Ready(pod) {
				needed++
			}
		}
	}
	allowed, known := budget.Allowed(one.PodDisruptionBudget)
	return left > 0 && known && allowed >= needed
}

// giveUp stops to wait for the budgets that could not be locked in time. The others
// are locked when it is known what becomes of their pods. Nobody gives up the turn
// that other drains have before, nor asks pods to leave that their owner's lock keeps:
// when it goes they may stay after all.
func (p *pass) giveUp() {
	deadline, ends := p.deadline()
	if len(p.obstacles) == 0 || !ends || p.Now.Before(deadline) {
		return
	}
	become := "are drained as if they had no label " + v1alpha1.OnUpgradeLabel
	if p.action() == v1alpha1.LockTimeoutDelete {
		become = "are deleted past it"
	}
	for _, o := range p.obstacles {
		if o.turn || o.locked && p.action() == v1alpha1.LockTimeoutEvict {
			continue
		}
		p.status.GivenUp = append(p.status.GivenUp, v1alpha1.GivenUpBudget{
			BudgetReference: o.BudgetReference, Action: p.action(), GivenUpTime: stamp(p.Now), Message: excerpt.Of(o.message, maxMessage),
			PodUIDs: p.stayers(o.BudgetReference), Locked: o.locked,
		})
		p.emit(event.LockTimedOut(p.Record, fmt.Sprintf("%s could not be locked within %s, so its pods that stay on node %s %s: %s",
			named(o.BudgetReference), p.timeout(), p.Record.Name, become, o.message)))
	}
	// Whoever makes a budget anew under its name must not fill the record: the oldest
	// ones are forgotten, and waited for again if they are still needed.
	p.status.GivenUp = p.status.GivenUp[max(0, len(p.status.GivenUp)-MaxBudgets):]
}

// stayers are the UIDs of the pods of the record under a budget.
func (p *pass) stayers(b v1alpha1.BudgetReference) []types.UID {
	var uids []types.UID
	for _, pod := range p.staying[b.UID] {
		uids = append(uids, pod.UID)
	}
	return uids
}

// dropOutdated keeps no more than what was promised while the spec does not know yet that
// a budget was given up: if its pods have to leave, the node must not hold locks
// meanwhile. Two nodes that did would each wait to evict pods under a lock of the
// other.
func (p *pass) dropOutdated() {
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

// yield forgets what was taken and not confirmed if not everything can be had, so
// that others can have it.
func (p *pass) yield() {
	if len(p.obstacles) == 0 {
		return
	}
	p.status.Locks = slices.DeleteFunc(p.status.Locks, func(lock v1alpha1.RecordedLock) bool { return lock.ConfirmedTime == nil })
}

// confirm promises that the node may go, for all locks at once: a promise for some
// of them would keep them while the node waits for others.
func (p *pass) confirm() {
	if !p.promisable() || !p.Live || p.Now.Before(p.settledAt()) || p.busy() || !p.vouched() {
		return
	}
	for _, b := range p.needs {
		if lock := p.lock(b); lock.ConfirmedTime == nil {
			at := stamp(p.Now)
			lock.ConfirmedTime = &at
		}
	}
}

// missing is true while a lock is to be taken.
func (p *pass) missing() bool {
	return slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return !p.budgets[b].ours() })
}

// unconfirmed is true while a lock is to be taken or confirmed.
func (p *pass) unconfirmed() bool {
	return slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return !p.confirmed(b) })
}

// settledAt is when no eviction can land any more that was admitted before a lock.
func (p *pass) settledAt() (at time.Time) {
	for _, b := range p.needs {
		lock := p.lock(b)
		if lock != nil && lock.ConfirmedTime == nil && lock.AcquiredTime.Add(Settle).After(at) {
			at = lock.AcquiredTime.Add(Settle)
		}
	}
	return at
}

// busy is true while an eviction of our own is under way that began before a lock.
func (p *pass) busy() bool {
	return slices.ContainsFunc(p.needs, func(b v1alpha1.BudgetReference) bool {
		return !p.confirmed(b) && p.Busy[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}]
	})
}
