package drainlock_test

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

func promised(r *v1alpha1.DrainRecord, b v1alpha1.BudgetReference) bool {
	return r != nil && !r.Spec.Complete && slices.ContainsFunc(r.Status.Locks, func(lock v1alpha1.RecordedLock) bool {
		return lock.BudgetReference == b && lock.ConfirmedTime != nil
	})
}

// available are the pods of a budget that are ready and stay so, whatever the
// nodes do that may go down.
func (w *world) available(b *policyv1.PodDisruptionBudget) int {
	n := 0
	for _, pod := range w.pods.now {
		if w.selects(b, pod) && isReady(pod) && !w.dead[pod.UID] && !promised(w.records.now[pod.Spec.NodeName], ref(b)) {
			n++
		}
	}
	return n
}

func (w *world) check() {
	if w.checked == w.changes() {
		return
	}
	w.checked = w.changes()
	for _, b := range w.all(w.budgets.now) {
		if !w.rough && !w.wipes && w.available(b) < w.desired(b) {
			w.fail("%s has %d pods that are not down or may go down, and needs %d", b.Name, w.available(b), w.desired(b))
		}
		w.checkOne(b)
	}
	w.checkDown()
}

// checkOne: no two nodes may go down under the same budget.
func (w *world) checkOne(b *policyv1.PodDisruptionBudget) {
	var nodes []string
	for _, m := range w.nodes {
		if promised(w.records.now[m.name], ref(b)) {
			nodes = append(nodes, m.name)
		}
	}
	if len(nodes) > 1 && !w.rough {
		w.fail("%s is locked by %v", b.Name, nodes)
	}
}

// checkConfirmed: a node may go down only if every budget bears it at that moment.
func (w *world) checkConfirmed(before, after *v1alpha1.DrainRecord) {
	for _, lock := range after.Status.Locks {
		b := w.budgets.now[lock.BudgetReference]
		if promised(before, lock.BudgetReference) || !promised(after, lock.BudgetReference) {
			continue
		}
		if b == nil {
			w.fail("%s of %s is confirmed and does not exist", lock.Name, after.Name)
			return
		}
		hold, locked := budget.LockOf(b, w.now.Add(w.skew), 0)
		if _, node, _ := hold.Drain(); !locked || node != after.Name {
			w.fail("%s of %s is confirmed and locked by %q", b.Name, after.Name, hold.Holder)
		}
	}
}

// checkMutex: it is taken only from nobody, from oneself or from somebody who does not need it.
func (w *world) checkMutex(node string, step drainlock.Step) {
	if step.Kind == drainlock.TakeMutex {
		w.checkTurn(node)
	}
	now := w.mutex.now[v1alpha1.DrainLockMutex]
	holder := nodeOf(now)
	if step.Kind == drainlock.GiveMutex || w.flaw == greedy {
		if holder != node && w.flaw != greedy {
			w.fail("%s gives the mutex of %q away", node, holder)
		}
		return
	}
	other := w.records.now[holder]
	if holder == "" || holder == node || other == nil || other.Spec.Complete || len(other.Spec.Budgets) == 0 {
		return
	}
	if w.now.Add(w.skew).Sub(now.Spec.RenewTime.Time) < time.Minute && now.Spec.RenewTime.Sub(w.now.Add(w.skew)) < 2*time.Minute {
		w.fail("%s takes the mutex of %s", node, holder)
	}
}

// checkLock: a lock is taken under the mutex, or beside a holder that shares no budget,
// and after those before it as far as the manager sees.
func (w *world) checkLock(s drainlock.Snapshot, b *policyv1.PodDisruptionBudget) {
	record := s.Record
	if _, renewed := budget.LockOf(b, s.Now, 0); renewed || w.rough || w.flaw == greedy {
		return
	}
	if holder := nodeOf(s.Mutex); holder != record.Name && (s.MutexRecord == nil || share(s.MutexRecord, record)) {
		w.fail("%s takes the lock of %s under the mutex of %q", record.Name, b.Name, holder)
	}
	for _, earlier := range s.Budgets {
		if earlier.Name >= b.Name || !slices.Contains(record.Spec.Budgets, ref(earlier)) || drainlock.GivenUp(w.records.now[record.Name], ref(earlier)) {
			continue
		}
		hold, _ := budget.LockOf(earlier, s.Now, 0)
		if _, node, _ := hold.Drain(); node != record.Name {
			w.fail("%s takes the lock of %s before that of %s", record.Name, b.Name, earlier.Name)
		}
	}
}

// checkTaken: nobody's lock that is in force is overwritten.
func (w *world) checkTaken(s drainlock.Snapshot, seen *policyv1.PodDisruptionBudget) {
	if nodeOf(s.Mutex) != s.Record.Name {
		w.checkTurn(s.Record.Name)
	}
	now := w.budgets.now[ref(seen)]
	if now == nil || now.ResourceVersion != seen.ResourceVersion && w.flaw != noVersions {
		return
	}
	hold, locked := budget.LockOf(now, s.Now, 0)
	if _, node, _ := hold.Drain(); locked && node != s.Record.Name {
		w.fail("%s overwrites the lock of %s by %q", s.Record.Name, now.Name, hold.Holder)
	}
}

// checkReleased: after the maintenance a lock stays until its pods are ready or
// gone, or until it ends.
func (w *world) checkReleased(s drainlock.Snapshot, b *policyv1.PodDisruptionBudget) {
	_, locked := budget.LockOf(b, s.Now, 0)
	if w.rough || w.wipes || !locked || !s.Record.Spec.Complete && !drainlock.Returned(w.records.now[s.Record.Name]) {
		return
	}
	for _, stayed := range s.Record.Spec.Pods {
		pod := w.pods.now[stayed.UID]
		if pod != nil && (!isReady(pod) || w.dead[pod.UID]) && slices.Contains(stayed.BudgetUIDs, b.UID) {
			w.fail("%s gives %s free before %s is ready", s.Record.Name, b.Name, pod.Name)
		}
	}
}

func (w *world) checkDecision(s drainlock.Snapshot, d drainlock.Decision) {
	status := s.Record.Status
	if d.Status != nil {
		status = *d.Status
	}
	if len(status.Conditions) != 1 || status.Conditions[0].Message == "" || status.Conditions[0].Reason == "" {
		w.fail("condition Locked says nothing: %v", status.Conditions)
	}
	for _, e := range append(d.Events, d.Step.Events...) {
		if e.Message == "" || e.Reason == "" || e.Regarding.Name == "" {
			w.fail("an event says nothing: %v", e)
		}
	}
	if d.RequeueAfter < 0 {
		w.fail("the manager is asked to look again %s ago", -d.RequeueAfter)
	}
	held := status.Conditions[0].Status == metav1.ConditionTrue
	after := s.Record.DeepCopy()
	after.Status = status
	missing := slices.ContainsFunc(s.Record.Spec.Budgets, func(b v1alpha1.BudgetReference) bool {
		return !slices.ContainsFunc(s.Budgets, func(one *policyv1.PodDisruptionBudget) bool { return ref(one) == b })
	})
	if held && !drainlock.Held(after) && len(status.GivenUp) == 0 && !missing {
		w.fail("condition Locked is True and not everything is held")
	}
}

// The flaws of worlds.
const (
	// sound has none.
	sound flaw = ""
	// hasty confirms locks without waiting for evictions that began before.
	hasty flaw = "hasty"
	// deadCache confirms by what a cache shows.
	deadCache flaw = "a cache that is believed"
	// forgetful does not know of its own evictions.
	forgetful flaw = "forgetful"
	// noVersions writes over what was written since.
	noVersions flaw = "no resource versions"
	// lawless evictions do not honour locks.
	lawless flaw = "lawless evictions"
	// noMutex lets everybody take locks at once.
	noMutex flaw = "no mutex"
	// credulous worlds believe that a node is back when somebody says so.
	credulous flaw = "credulous"
	// noQueue lets whoever comes first go first.
	noQueue flaw = "no queue"
	// selfish nodes do not look at what lies on others.
	selfish flaw = "selfish"
	// greedy nodes keep what they have and wait for the rest, in any order.
	greedy flaw = "greedy"
)

func (w *world) spoil(s drainlock.Snapshot) drainlock.Snapshot {
	switch w.flaw {
	case hasty:
		s.Record, s.Live, s.Busy = s.Record.DeepCopy(), true, nil
		for i := range s.Record.Status.Locks {
			s.Record.Status.Locks[i].AcquiredTime = metav1.NewTime(began.Add(-time.Hour))
		}
	case credulous:
		s.Record = w.believe(s)
	case forgetful:
		s.Busy = nil
	case noMutex, greedy:
		s.Mutex, s.MutexRecord = nil, nil
		if !s.Record.Spec.Complete {
			s.Mutex = ownMutex(s)
		}
		if w.flaw == greedy {
			s.Record = w.wantOne(s)
		}
	}
	return s
}

func ownMutex(s drainlock.Snapshot) *coordinationv1.Lease {
	now := metav1.NewMicroTime(s.Now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DrainLockMutex},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(s.Record.Spec.MaintenanceRef.Name + "/" + s.Record.Name), RenewTime: &now},
	}
}

// wantOne has a node want what it has and one thing more: the first that is free,
// from the end if the node is an even one.
func (w *world) wantOne(s drainlock.Snapshot) *v1alpha1.DrainRecord {
	record := s.Record.DeepCopy()
	var own, free []v1alpha1.BudgetReference
	for _, b := range s.Budgets {
		hold, locked := budget.LockOf(b, s.Now, 0)
		_, node, _ := hold.Drain()
		switch {
		case !slices.Contains(record.Spec.Budgets, ref(b)):
		case locked && node == record.Name:
			own = append(own, ref(b))
		case !locked:
			free = append(free, ref(b))
		}
	}
	if record.Name == "node-2" || record.Name == "node-4" {
		slices.Reverse(free)
	}
	record.Spec.Budgets = append(own, free[:min(len(free), 1)]...)
	return record
}

// TestSimulationBites has worlds that do not keep to the protocol, each of which
// must come to harm. It begins with the worlds that did when this was written.
func TestSimulationBites(t *testing.T) {
	t.Parallel()
	const worlds = 3000
	for f, first := range map[flaw]uint64{
		hasty: 156, deadCache: 531, forgetful: 140, noVersions: 260, lawless: 122, noMutex: 0, greedy: 4, credulous: 5, noQueue: 139, selfish: 86,
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			for n := range uint64(worlds) {
				seed := (first + n) % worlds
				w := newSimWorld(seed, false, f)
				w.wipes = f == selfish
				if fault := w.live(); fault != "" {
					t.Logf("seed %d: %s", seed, fault)
					return
				}
			}
			t.Error("nothing is noticed")
		})
	}
}
