package drainlock_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/test/tier"
)

const (
	// seeds is how many worlds of each kind live, manySeeds how many in the second tier.
	seeds, manySeeds = 60, 500
	// wild is how many things happen in a world before it comes to rest, patience how
	// many rounds of 4 s that may take: less than a lock holds that nobody gives back.
	wild     = 160
	patience = 140
)

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func (w *world) snapshot(r *v1alpha1.DrainRecord) drainlock.Snapshot {
	s := w.look(r)
	for _, name := range slices.Sorted(maps.Keys(w.records.seen())) {
		other := w.records.seen()[name]
		if !drainlock.Precedes(other, r) {
			continue
		}
		s.Earlier++
		if s.Ahead == nil && w.flaw != noQueue && drainlock.Contends(w.look(other)) {
			s.Ahead = other
		}
	}
	return w.spoil(s)
}

func (w *world) busy() map[types.NamespacedName]bool {
	busy := map[types.NamespacedName]bool{}
	for _, e := range w.flying {
		pod := w.pods.now[e.pod]
		if !e.own || pod == nil {
			continue
		}
		for _, b := range w.all(w.budgets.now) {
			if w.selects(b, pod) {
				busy[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}] = true
			}
		}
	}
	return busy
}

func nodeOf(mutex *coordinationv1.Lease) string {
	if mutex == nil {
		return ""
	}
	_, node, _ := strings.Cut(*mutex.Spec.HolderIdentity, "/")
	return node
}

// manage has the manager decide about a node and act. It may die between its
// writes, and the world goes on between them. It returns false if there was
// nothing to do.
func (w *world) manage(node string) bool {
	record := w.records.seen()[node]
	if record == nil {
		return w.remakeRecord(node)
	}
	s := w.snapshot(record)
	d := drainlock.Decide(s)
	w.checkDecision(s, d)
	if d.Status != nil {
		if !w.writeStatus(s.Record, d) {
			return true
		}
		record = w.records.now[node]
		if !w.calm && w.chance(8) {
			return true // It dies.
		}
		if !w.calm && w.chance(3) {
			w.tick(time.Duration(w.rand.IntN(700)) * time.Millisecond)
		}
	}
	w.do(record, s, d.Step)
	return d.Status != nil || d.Step.Kind != ""
}

func (w *world) writeStatus(seen *v1alpha1.DrainRecord, d drainlock.Decision) bool {
	now := w.records.now[seen.Name]
	if now == nil || now.ResourceVersion != seen.ResourceVersion {
		return false
	}
	changed := now.DeepCopy()
	changed.Status = *d.Status
	w.putRecord(changed)
	for _, e := range d.Events {
		if e.Regarding.Kind == "NodeMaintenance" {
			w.say("%s %s", e.Reason, seen.Name)
		}
	}
	w.checkConfirmed(now, changed)
	return true
}

func (w *world) do(record *v1alpha1.DrainRecord, s drainlock.Snapshot, step drainlock.Step) {
	name := record.Name
	switch step.Kind {
	case drainlock.TakeMutex, drainlock.GiveMutex:
		now := w.mutex.now[v1alpha1.DrainLockMutex]
		if now != nil && now.ResourceVersion != step.Mutex.ResourceVersion || w.flaw == noMutex {
			return
		}
		w.checkMutex(name, step)
		lease := step.Mutex.DeepCopy()
		lease.ResourceVersion = w.nextVersion()
		w.mutex.change(w.now, func(all map[string]*coordinationv1.Lease) { all[lease.Name] = lease })
		w.say("%s %s", step.Kind, name)
	case drainlock.WriteLock:
		w.checkTaken(s, step.Budget)
		if w.annotate(step.Budget, step.Lock) {
			w.say("%s %s %s", step.Kind, name, step.Budget.Name)
			w.checkLock(s, step.Budget)
		}
	case drainlock.RemoveLock:
		w.checkReleased(s, step.Budget)
		if w.annotate(step.Budget, "") {
			w.say("%s %s %s", step.Kind, name, step.Budget.Name)
		}
	case drainlock.WritePromise, drainlock.RemovePromise:
		w.promise(name, step)
	case drainlock.DeletePod:
		if w.pods.now[step.Pod.UID] != nil {
			w.pods.change(w.now, func(all map[types.UID]*corev1.Pod) { delete(all, step.Pod.UID) })
			w.say("%s %s %s", step.Kind, name, step.Pod.Name)
		}
	case drainlock.Finish:
		if now := w.records.now[name]; now != nil && now.ResourceVersion == record.ResourceVersion {
			w.records.change(w.now, func(all map[string]*v1alpha1.DrainRecord) { delete(all, name) })
			w.say("%s %s", step.Kind, name)
		}
	}
}

func (w *world) keep() {
	for _, b := range w.all(w.budgets.seen()) {
		hold, _ := budget.LockOf(b, w.now, 0)
		_, node, _ := hold.Drain()
		standing := w.records.now[node] != nil || drainlock.Promised(w.hosts.now[node])
		of := ""
		if w.records.seen()[node] != nil || drainlock.Promised(w.hosts.seen()[node]) {
			of = node
		}
		k := drainlock.Keep(b, of, w.now.Add(w.skew), 0)
		if k.Remove && (!k.Stray || !standing) && w.annotate(b, "") {
			w.say("%s %s", k.Events[0].Reason, b.Name)
		}
	}
}

func (w *world) step() {
	m := w.nodes[w.rand.IntN(len(w.nodes))]
	w.hear()
	switch w.rand.IntN(12) {
	case 0, 1, 2, 3, 4:
		w.manage(m.name)
	case 5, 6:
		w.maintain(m)
	case 7:
		w.reboot(m)
	case 8:
		w.controllers(false)
	case 9:
		w.keep()
	case 10:
		if !w.wipes || w.chance(4) {
			w.disturb()
		}
	case 11:
		w.tick(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
	}
	if w.wipes {
		w.wipe()
	}
	w.check()
}

// rest lets the world come to rest: nobody disturbs it any more, and everybody
// gets its turn.
func (w *world) rest() {
	w.calm = true
	w.restoreBudgets()
	for _, b := range w.all(w.budgets.now) {
		b = b.DeepCopy()
		b.Spec.MaxUnavailable.IntVal = max(b.Spec.MaxUnavailable.IntVal, 1)
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": b.Name}}
		b.Generation++
		w.putBudget(b)
	}
	rounds := patience
	if w.rough {
		rounds *= 10 // What nobody can read, and who has died, takes longer.
	}
	for i := range rounds {
		if w.atRest() || w.fault != "" {
			return
		}
		w.tick(w.pause())
		w.hearAll()
		w.controllers(true)
		for _, m := range w.nodes {
			w.maintain(m)
			w.reboot(m)
			w.hearAll()
			w.settle(m.name)
			w.check()
		}
		if i%4 == 0 {
			w.keep()
		}
	}
	w.fail("it never comes to rest: %s", w.state())
}

func (w *world) settle(node string) {
	for range 60 {
		w.hearAll()
		if !w.manage(node) || w.flaw == greedy {
			return
		}
	}
	w.fail("the manager never stops to write about %s: %s", node, w.state())
}

func (w *world) pause() time.Duration {
	if w.idle() {
		return time.Minute // Only locks of others are left.
	}
	return 4 * time.Second
}

func (w *world) idle() bool {
	return !slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.maintenance != nil })
}

func (w *world) atRest() bool {
	if !w.idle() {
		return false
	}
	locks := slices.ContainsFunc(w.all(w.budgets.now), func(b *policyv1.PodDisruptionBudget) bool { return len(b.Annotations) > 0 })
	return len(w.records.now) == 0 && !locks
}

func (w *world) state() string {
	var parts []string
	for _, m := range w.nodes {
		if m.maintenance == nil {
			continue
		}
		text := fmt.Sprintf("%s drained=%t over=%t away=%t", m.name, m.drained, m.over, m.away)
		if r := w.records.now[m.name]; r != nil && len(r.Status.Conditions) > 0 {
			text += " " + r.Status.Conditions[0].Reason + ": " + r.Status.Conditions[0].Message
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func (w *world) live() string {
	steps := wild
	if w.wipes {
		steps *= 4
	}
	for i := 0; i < steps && w.fault == ""; i++ {
		w.step()
	}
	if w.fault == "" {
		w.rest()
	}
	if node := nodeOf(w.mutex.now[v1alpha1.DrainLockMutex]); w.fault == "" && !w.rough && node != "" {
		w.fail("%s still has the mutex", node)
	}
	return w.fault
}

// TestSimulation lives random lives of clusters whose nodes come back.
func TestSimulation(t *testing.T) {
	t.Parallel()
	simulate(t, seeds)
}

func TestLongSimulation(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	simulate(t, manySeeds)
}

func simulate(t *testing.T, seeds uint64) {
	t.Helper()
	happens := []string{
		"TakeMutex", "GiveMutex", "WriteLock", "RemoveLock", "Finish", "drained", "down", "complete", "cancelled", "evicted",
		"LocksHeld", "LocksReleased", "LockEnded", "NodeReturned",
	}
	if seeds == manySeeds {
		happens = append(happens, "LockTimedOut")
	}
	for name, test := range map[string]struct {
		rough bool
		wants []string
	}{
		"whatever people do": {wants: happens},
		"whatever happens":   {rough: true, wants: append([]string{"DeletePod", "LockLost", "StrayLockRemoved"}, happens...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := liveAll(t, seeds, test.rough)
			for _, what := range test.wants {
				if count[what] == 0 {
					t.Errorf("%s never happened", what)
				}
			}
		})
	}
}

// liveAll lives the worlds of all seeds, and returns how often what happened.
func liveAll(t *testing.T, seeds uint64, rough bool) (count map[string]int) {
	t.Helper()
	count = map[string]int{}
	for seed := range seeds {
		w := newSimWorld(seed, rough, sound)
		w.count = count
		if fault := w.live(); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
	}
	return count
}

// TestTrace is the story of one seed, so that a change of the protocol is seen.
func TestTrace(t *testing.T) {
	t.Parallel()
	w := newSimWorld(4, false, sound)
	w.trace = []string{}
	if fault := w.live(); fault != "" {
		t.Fatal(fault)
	}
	want, err := os.ReadFile("testdata/trace.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimRight(string(want), "\n"), "\n"), w.trace); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}
