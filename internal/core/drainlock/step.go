package drainlock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const shortestDuration = 10 * time.Minute

// steps lists the possible steps, the most urgent first. Stray locks come last, so that creating
// them delays nothing.
var steps = []func(*planner) (Step, bool){renew, unlockOne, removePromise, giveMutex, takeMutex, lockOne, writePromise, deletePod, finish, removeStray}

func (p *planner) act() {
	for _, step := range steps {
		if chosen, found := step(p); found {
			p.decision.Step = chosen
			return
		}
	}
}

// isKept reports whether a lock is there and stays. Unconfirmed locks are released while there are
// obstacles.
func (p *planner) isKept(b v1alpha1.BudgetReference) bool {
	return p.budgets[b].ours() && (p.confirmed(b) || len(p.obstacles) == 0)
}

// renew extends a lock after half of its time, or when another maintenance has taken over the node.
func renew(p *planner) (Step, bool) {
	for _, b := range p.needs {
		if one := p.budgets[b]; p.isKept(b) && !p.isRefused(one.UID) && (one.lock.Holder != p.holder() || !p.Now.Before(p.renewAt(one))) {
			return p.write(b), true
		}
	}
	return Step{}, false
}

func (p *planner) duration() time.Duration {
	longest := cmp.Or(max(p.longest, 0), budget.LongestLock)
	return min(max(shortestDuration, 2*p.downtime()), longest)
}

// renewAt returns when half of the time of a lock is over. A lock that cannot be extended is left
// to expire.
func (p *planner) renewAt(one observedBudget) time.Time {
	at := one.lock.Ends.Add(-p.duration() / 2)
	if gain := p.Now.Add(p.duration()).Sub(one.lock.Ends); !p.Now.Before(at) && gain < 2*time.Second {
		return one.lock.Ends
	}
	return at
}

func (p *planner) holder() string {
	return budget.Holder(p.Record.Spec.MaintenanceRef.Name, p.Record.Name)
}

func (p *planner) write(b v1alpha1.BudgetReference) Step {
	one, now := p.budgets[b], stamp(p.Now)
	lock := budget.Lock{
		Holder: p.holder(), AcquiredAt: now, ExpiresAt: stamp(p.Now.Add(p.duration())),
		Reason: cmp.Or(p.Record.Spec.Reason, fmt.Sprintf("pods stay on node %s during its maintenance", p.Record.Name)),
	}
	if one.ours() {
		lock.RenewedAt = &now
		if !one.lock.AcquiredAt.IsZero() {
			lock.AcquiredAt = one.lock.AcquiredAt
		}
	}
	return Step{Kind: WriteLock, Budget: one.PodDisruptionBudget, Lock: lock.Write()}
}

// unlockOne removes a lock without a purpose, the last one first: if it can be taken again, it is
// not taken out of order.
func unlockOne(p *planner) (Step, bool) {
	for _, b := range slices.Backward(slices.SortedFunc(maps.Keys(p.budgets), compare)) {
		one := p.budgets[b]
		if !one.own || p.isRefused(one.UID) || !p.isRemovable(b) {
			continue
		}
		step := Step{Kind: RemoveLock, Budget: one.PodDisruptionBudget}
		if waits := p.awaited(b); p.Record.Spec.Complete && len(waits) > 0 {
			step.Events = event.LockRanOut(p.Record, fmt.Sprintf("The lock of %s expired before all pods that stayed on node %s were ready again, such as %s/%s.",
				named(b), p.Record.Name, waits[0].Namespace, waits[0].Name))
		}
		return step, true
	}
	return Step{}, false
}

// isRemovable reports whether a lock is not needed, has to go so that others can have it, or, after
// the maintenance, whether its pods are ready or gone.
func (p *planner) isRemovable(b v1alpha1.BudgetReference) bool {
	switch {
	case p.Record.Spec.Complete:
		return !p.budgets[b].locked || len(p.awaited(b)) == 0
	case slices.Contains(p.needs, b):
		return len(p.obstacles) > 0 && !p.isKept(b)
	default:
		return true
	}
}

func (p *planner) isTaking() bool { return len(p.obstacles) == 0 && p.isMissing() }

func giveMutex(p *planner) (Step, bool) {
	return Step{Kind: GiveMutex, Mutex: p.mutexAs("")}, p.mutexOwn() && !p.isTaking()
}

func takeMutex(p *planner) (Step, bool) {
	may := p.mutexFree()
	if p.mutexOwn() {
		may = p.mutexStale()
	}
	return Step{Kind: TakeMutex, Mutex: p.mutexAs(p.Record.Spec.MaintenanceRef.Name + "/" + p.Record.Name)}, p.isTaking() && may
}

func lockOne(p *planner) (Step, bool) {
	if !p.isTaking() || !p.mutexOwn() && !p.besideMutex() {
		return Step{}, false
	}
	next := slices.IndexFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return !p.budgets[b].ours() })
	return p.write(p.needs[next]), true
}

// deletePod deletes a pod whose budget was given up, as long as the current maintenance asks for
// it: the author of one that took over must not bypass budgets.
func deletePod(p *planner) (Step, bool) {
	if p.Record.Spec.Complete || p.action() != v1alpha1.LockTimeoutDelete {
		return Step{}, false
	}
	for _, given := range p.status.GivenUp {
		if given.Action != v1alpha1.LockTimeoutDelete {
			continue
		}
		for _, uid := range given.PodUIDs {
			pod := p.pods[uid]
			if pod == nil || !isDeletable(pod) || p.isRefused(pod.UID) {
				continue
			}
			message := fmt.Sprintf("Deleted pod %s/%s on node %s despite %s because NodeMaintenance %s has onLockTimeout Delete. %s",
				pod.Namespace, pod.Name, p.Record.Name, named(given.BudgetReference), p.Record.Spec.MaintenanceRef.Name, given.Message)
			return Step{Kind: DeletePod, Pod: pod, Events: event.PodDeletedPastBudget(p.Record, pod, message)}, true
		}
	}
	return Step{}, false
}

// isDeletable reports whether a pod still asks to stay and was not relabelled since.
func isDeletable(pod *corev1.Pod) bool {
	asks, _ := podclass.OnUpgrade(pod)
	_, relabelled := pod.Labels[v1alpha1.DrainLabel]
	return asks && !relabelled && pod.DeletionTimestamp == nil && !podclass.Terminal(pod)
}

// finish deletes the record when nothing is left to remember.
func finish(p *planner) (Step, bool) {
	own := slices.ContainsFunc(slices.Collect(maps.Values(p.budgets)), func(one observedBudget) bool { return one.own })
	return Step{Kind: Finish}, p.Record.Spec.Complete && p.Record.DeletionTimestamp == nil && !own && len(p.status.Locks) == 0 && !Promised(p.Node)
}

// removeStray removes a lock that names this node and that its record does not ask for: it was
// needed before a crash, or was forged.
func removeStray(p *planner) (Step, bool) {
	for _, b := range slices.SortedFunc(maps.Keys(p.budgets), compare) {
		one := p.budgets[b]
		if !one.stray || p.isRefused(one.UID) {
			continue
		}
		return Step{Kind: RemoveLock, Budget: one.PodDisruptionBudget, Stray: true, Events: []event.Event{
			event.StrayLockRemoved(one.PodDisruptionBudget, fmt.Sprintf(
				"Removed the lock of %s because the DrainRecord of node %s does not request it. %s",
				named(b), p.Record.Name, sentence(one.lock.Describe(one.PodDisruptionBudget)))),
		}}, true
	}
	return Step{}, false
}

func (p *planner) wait() {
	for _, o := range p.obstacles {
		p.wake(o.ends)
	}
	if at, ends := p.deadline(); ends && len(p.obstacles) > 0 {
		p.wake(at)
	}
	if p.isTaking() && !p.mutexOwn() && !p.mutexFree() && !p.besideMutex() {
		p.wake(p.mutexEnds())
	}
	if !p.isMissing() && p.hasUnconfirmed() {
		p.wake(p.settledAt())
		if p.Live && p.isBusy() {
			p.wake(p.Now.Add(Settle))
		}
	}
	if p.isPromisable() && !countFor(p.Record, p.status.Boots) {
		p.wake(p.promisedAt())
	}
	if p.awaitsReports() {
		p.wake(p.trustTime())
	}
	p.waitForLocks()
}

func (p *planner) waitForLocks() {
	for b, one := range p.budgets {
		switch {
		case !one.ours():
		case p.Record.Spec.Complete:
			p.wake(one.lock.Ends)
		case slices.Contains(p.needs, b):
			p.wake(p.renewAt(one))
		}
	}
}
