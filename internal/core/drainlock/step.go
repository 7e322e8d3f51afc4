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

// shortestDuration is how long a lock of a drain holds at least.
const shortestDuration = 10 * time.Minute

// steps are what may be done, the most urgent first. Locks that nobody asks for come
// last: whoever writes them must not hold up what is asked for.
var steps = []func(*pass) (Step, bool){renew, unlockOne, removePromise, giveMutex, takeMutex, lockOne, writePromise, deletePod, finish, removeStray}

// act chooses the one step that is done.
func (p *pass) act() {
	for _, step := range steps {
		if chosen, found := step(p); found {
			p.decision.Step = chosen
			return
		}
	}
}

// kept is true of a lock that is there and remains: what was not confirmed goes
// while there are obstacles.
func (p *pass) kept(b v1alpha1.BudgetReference) bool {
	return p.budgets[b].ours() && (p.confirmed(b) || len(p.obstacles) == 0)
}

// renew prolongs a lock when half of its time is over, or when the maintenance
// has handed the node over to another one.
func renew(p *pass) (Step, bool) {
	for _, b := range p.needs {
		if one := p.budgets[b]; p.kept(b) && !p.refused(one.UID) && (one.hold.Holder != p.holder() || !p.Now.Before(p.renewAt(one))) {
			return p.write(b), true
		}
	}
	return Step{}, false
}

// duration is how long a lock is taken for.
func (p *pass) duration() time.Duration {
	longest := cmp.Or(max(p.longest, 0), budget.LongestLock)
	return min(max(shortestDuration, 2*p.downtime()), longest)
}

// renewAt is when half of the time of a lock is over. One that cannot be made any
// longer is left to end.
func (p *pass) renewAt(one sight) time.Time {
	at := one.hold.Ends.Add(-p.duration() / 2)
	if gain := p.Now.Add(p.duration()).Sub(one.hold.Ends); !p.Now.Before(at) && gain < 2*time.Second {
		return one.hold.Ends
	}
	return at
}

func (p *pass) holder() string {
	return budget.Holder(p.Record.Spec.MaintenanceRef.Name, p.Record.Name)
}

// write sets the lock of a budget, anew or to prolong it.
func (p *pass) write(b v1alpha1.BudgetReference) Step {
	one, now := p.budgets[b], stamp(p.Now)
	lock := budget.Lock{
		Holder: p.holder(), AcquiredAt: now, ExpiresAt: stamp(p.Now.Add(p.duration())),
		Reason: cmp.Or(p.Record.Spec.Reason, fmt.Sprintf("pods stay on node %s during its maintenance", p.Record.Name)),
	}
	if one.ours() {
		lock.RenewedAt = &now
		if !one.hold.AcquiredAt.IsZero() {
			lock.AcquiredAt = one.hold.AcquiredAt
		}
	}
	return Step{Kind: WriteLock, Budget: one.PodDisruptionBudget, Lock: lock.Write()}
}

// unlockOne removes a lock of ours that has no reason any more, the last one first:
// if it can be had again after all, none is taken below another that we still have.
func unlockOne(p *pass) (Step, bool) {
	for _, b := range slices.Backward(slices.SortedFunc(maps.Keys(p.budgets), compare)) {
		one := p.budgets[b]
		if !one.own || p.refused(one.UID) || !p.removable(b) {
			continue
		}
		step := Step{Kind: RemoveLock, Budget: one.PodDisruptionBudget}
		if waits := p.awaited(b); p.Record.Spec.Complete && len(waits) > 0 {
			step.Events = event.LockRanOut(p.Record, fmt.Sprintf("The lock of %s has ended before every pod that stayed on node %s was ready again, such as %s/%s.",
				named(b), p.Record.Name, waits[0].Namespace, waits[0].Name))
		}
		return step, true
	}
	return Step{}, false
}

// removable is true of a lock that is not needed, that has to go so that others
// can have it, or, after the maintenance, whose pods are ready again or gone.
func (p *pass) removable(b v1alpha1.BudgetReference) bool {
	switch {
	case p.Record.Spec.Complete:
		return !p.budgets[b].locked || len(p.awaited(b)) == 0
	case slices.Contains(p.needs, b):
		return len(p.obstacles) > 0 && !p.kept(b)
	default:
		return true
	}
}

// taking is true while locks are to be taken and can be had.
func (p *pass) taking() bool { return len(p.obstacles) == 0 && p.missing() }

func giveMutex(p *pass) (Step, bool) {
	return Step{Kind: GiveMutex, Mutex: p.mutexAs("")}, p.mutexOwn() && !p.taking()
}

func takeMutex(p *pass) (Step, bool) {
	may := p.mutexFree()
	if p.mutexOwn() {
		may = p.mutexStale()
	}
	return Step{Kind: TakeMutex, Mutex: p.mutexAs(p.Record.Spec.MaintenanceRef.Name + "/" + p.Record.Name)}, p.taking() && may
}

// lockOne takes the next lock in order, under the mutex or beside it.
func lockOne(p *pass) (Step, bool) {
	if !p.taking() || !p.mutexOwn() && !p.besideMutex() {
		return Step{}, false
	}
	next := slices.IndexFunc(p.needs, func(b v1alpha1.BudgetReference) bool { return !p.budgets[b].ours() })
	return p.write(p.needs[next]), true
}

// deletePod deletes a pod whose budget was given up, as long as the maintenance
// still asks for that: another one may have taken over since, whose author must
// not bypass budgets.
func deletePod(p *pass) (Step, bool) {
	if p.Record.Spec.Complete || p.action() != v1alpha1.LockTimeoutDelete {
		return Step{}, false
	}
	for _, given := range p.status.GivenUp {
		if given.Action != v1alpha1.LockTimeoutDelete {
			continue
		}
		for _, uid := range given.PodUIDs {
			pod := p.pods[uid]
			if pod == nil || !deletable(pod) || p.refused(pod.UID) {
				continue
			}
			message := fmt.Sprintf("Pod %s/%s on node %s was deleted past %s, as NodeMaintenance %s asks with onLockTimeout Delete: %s",
				pod.Namespace, pod.Name, p.Record.Name, named(given.BudgetReference), p.Record.Spec.MaintenanceRef.Name, given.Message)
			return Step{Kind: DeletePod, Pod: pod, Events: event.PodDeletedPastBudget(p.Record, pod, message)}, true
		}
	}
	return Step{}, false
}

// deletable is true of a pod that still asks to stay and to nothing else: whoever
// has relabelled it since has decided otherwise.
func deletable(pod *corev1.Pod) bool {
	asks, _ := podclass.OnUpgrade(pod)
	_, relabelled := pod.Labels[v1alpha1.DrainLabel]
	return asks && !relabelled && pod.DeletionTimestamp == nil && !podclass.Terminal(pod)
}

// finish ends the record when nothing is left that it has to remember.
func finish(p *pass) (Step, bool) {
	own := slices.ContainsFunc(slices.Collect(maps.Values(p.budgets)), func(one sight) bool { return one.own })
	return Step{Kind: Finish}, p.Record.Spec.Complete && p.Record.DeletionTimestamp == nil && !own && len(p.status.Locks) == 0 && !Promised(p.Node)
}

// removeStray removes a lock that names this node and that its record does not ask
// for: it was needed when a manager died, or somebody has made it up.
func removeStray(p *pass) (Step, bool) {
	for _, b := range slices.SortedFunc(maps.Keys(p.budgets), compare) {
		one := p.budgets[b]
		if !one.stray || p.refused(one.UID) {
			continue
		}
		return Step{Kind: RemoveLock, Budget: one.PodDisruptionBudget, Stray: true, Events: []event.Event{
			event.StrayLockRemoved(one.PodDisruptionBudget, fmt.Sprintf(
				"The lock of %s was removed, because the DrainRecord of node %s does not ask for it: %s",
				named(b), p.Record.Name, sentence(one.hold.Describe(one.PodDisruptionBudget)))),
		}}, true
	}
	return Step{}, false
}

// wait finds out when time alone changes the decision.
func (p *pass) wait() {
	for _, o := range p.obstacles {
		p.wake(o.ends)
	}
	if at, ends := p.deadline(); ends && len(p.obstacles) > 0 {
		p.wake(at)
	}
	if p.taking() && !p.mutexOwn() && !p.mutexFree() && !p.besideMutex() {
		p.wake(p.mutexEnds())
	}
	if !p.missing() && p.unconfirmed() {
		p.wake(p.settledAt())
		if p.Live && p.busy() {
			p.wake(p.Now.Add(Settle))
		}
	}
	if p.promisable() && !countFor(p.Record, p.status.Boots) {
		p.wake(p.promisedAt())
	}
	if p.awaitsReports() {
		p.wake(p.believedTime())
	}
	p.waitForLocks()
}

// waitForLocks finds out when locks end or are to be renewed.
func (p *pass) waitForLocks() {
	for b, one := range p.budgets {
		switch {
		case !one.ours():
		case p.Record.Spec.Complete:
			p.wake(one.hold.Ends)
		case slices.Contains(p.needs, b):
			p.wake(p.renewAt(one))
		}
	}
}
