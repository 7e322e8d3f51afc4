package scenario

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// What a drain in place has begun goes on in a cluster in which Ebbtide does badly.
// These take turns, for one manager is enough.
func TestLongLocksOutliveTheManager(t *testing.T) {
	t.Parallel()
	t.Run("whose webhooks cannot be called", noWebhookAnswers)
	t.Run("that is killed behind every write", killedBehindEveryWrite)
}

// Without its webhooks anybody can evict, but Ebbtide's own drains heed the locks of
// each other.
func noWebhookAnswers(t *testing.T) {
	w := newWorldIn(t, cluster.Spec{Tapped: true})
	nodes := w.nodes("one", "two", "three")
	w.replicated(myApp)
	w.nodes("spare")
	w.pods(nodes[1], pod{name: "held", held: true})
	w.setLock(myApp, ownerLock(metav1.Now().AddDate(0, 0, 1)))
	outages := w.watchOutages(myApp)
	w.maintainInPlace("upgrade-one", minutes, nodes[0])
	w.maintainInPlace("upgrade-three", minutes, nodes[2])
	w.maintain("drain", v1alpha1.StageDrain, nodes[1:2], selecting(entry(0), "name", "held"))
	w.awaitWaits("upgrade-one", nodes[0], "is locked by dba")
	w.awaitWaits("upgrade-three", nodes[2], "is locked by dba")

	w.cluster.WebhookPort(t)
	t.Cleanup(func() {
		if t.Failed() {
			w.restartManager()
		}
	})
	w.eventually("nobody to ask about evictions", func() (bool, any) {
		err := w.evict(w.replica(myApp, nodes[1]), metav1.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	w.setLock(myApp, "")
	first, second := w.awaitFirst(rolling{"upgrade-one", nodes[0]}, rolling{"upgrade-three", nodes[2]})
	holder := w.holder(first.maintenance, first.node)
	w.awaitLock(holder, myApp)
	w.release("held")

	w.awaitWaits("drain", nodes[1], "is locked by "+holder)
	w.awaitWaits(second.maintenance, second.node, "is locked by "+holder)
	w.goDown(first.node)
	w.assertStaysLocked(holder, myApp)
	w.restartManager()
	w.boot(first.node)
	w.recover(first.node)
	w.setStage(first.maintenance, v1alpha1.StageComplete)
	w.awaitDrained(second.maintenance)
	w.sayBack(second.node)
	w.setStage(second.maintenance, v1alpha1.StageComplete)
	w.awaitDrained("drain")
	w.setStage("drain", v1alpha1.StageComplete)
	w.awaitNothingLocked(nodes...)
	w.awaitAllowed(myApp, 1)
	outages.assertOneAtATime()
}

// rolling is a node that is upgraded in place.
type rolling struct{ maintenance, node string }

// awaitFirst waits until one of two maintenances is drained, and wants the other
// not to be.
func (w *world) awaitFirst(one, two rolling) (first, second rolling) {
	w.t.Helper()
	drained := func(r rolling) bool {
		m := &v1alpha1.NodeMaintenance{}
		w.get(m, w.name(r.maintenance))
		return apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	}
	w.eventually("one of two maintenances to be drained", func() (bool, any) {
		first, second = one, two
		if drained(two) {
			first, second = two, one
		}
		return drained(first), first
	})
	w.assertNotDrained(second.maintenance)
	return first, second
}

// restartManager has the webhooks lead to another manager.
func (w *world) restartManager() {
	w.t.Helper()
	w.manager.Kill(w.t)
	w.manager.Start(w.t)
}

// drill is the drain in place of one node. The manager may be killed behind one of
// its writes.
type drill struct {
	*world
	node    string
	budgets []string
	// killAt is the number of that write, from 1, and killAtMutex that of one by which the
	// node takes the mutex or gives it; 0 is none. A node needs no mutex while another one
	// holds it that shares no budget with it.
	killAt, killAtMutex int

	mu sync.Mutex
	// writes are those so far but for those of the mutex, of which one that is made again at
	// once counts once; mutexWrites are the others.
	writes, mutexWrites []string
	// mutex is true while the node holds it.
	mutex bool
}

// drill creates a node with two pods that stay.
func (w *world) drill(short string, killAt int) *drill {
	w.t.Helper()
	d := &drill{world: w, node: w.nodes(short)[0], killAt: killAt}
	d.budgets = []string{d.node + "-data", d.node + "-log"}
	w.guarded(d.node, d.budgets...)
	w.cluster.Witness(w.t, d.see)
	return d
}

// see counts the writes of the protocol for this node; all writes for it, if claims
// are to be proved at full length.
func (d *drill) see(write cluster.Write) (kill bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mine(write) {
		return false
	}
	what := strings.ReplaceAll(strings.ReplaceAll(write.String(), d.node, "NODE"), d.ns, "NAMESPACE")
	if strings.Contains(what, "/leases") {
		d.mutexWrites = append(d.mutexWrites, what)
		return len(d.mutexWrites) == d.killAtMutex
	}
	if len(d.writes) > 0 && d.writes[len(d.writes)-1] == what {
		return false
	}
	d.writes = append(d.writes, what)
	return len(d.writes) == d.killAt
}

// mine is true for a write about the record or a budget of the node, and for one by
// which the node takes the mutex or gives it.
func (d *drill) mine(write cluster.Write) bool {
	names := strings.Contains(write.Path, d.node) || strings.Contains(write.Body, d.node)
	switch what := write.String(); {
	case strings.Contains(what, "/leases"):
		mine := names || d.mutex
		d.mutex = names
		return mine
	case strings.Contains(what, "drainrecords"), strings.Contains(what, "/poddisruptionbudgets/"):
		return names
	}
	return *prove && names && !strings.Contains(write.Path, "/events")
}

// written are the writes so far.
func (d *drill) written() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.writes)
}

// killedBehindEveryWrite drains a node in peace to see what is written. Then it
// drains as many at once, and kills the manager behind each of these writes of
// another node. All come to the same end.
func killedBehindEveryWrite(t *testing.T) {
	w := newWorldIn(t, cluster.Spec{Tapped: true})
	calm := w.drill("calm", 0)
	w.play(calm)
	writes := calm.written()
	t.Logf("the writes of a drain in place with two budgets:\n%s", strings.Join(writes, "\n"))

	var missed []int
	for i := range writes {
		missed = append(missed, i+1)
	}
	begin, before := time.Now(), w.cluster.Kills()
	for _, number := range []int{1, 2} {
		w.killBehindMutex(number)
	}
	for round := 1; round <= killRounds && len(missed) > 0; round++ {
		missed = w.killBehind(round, missed)
	}
	kills := w.cluster.Kills() - before
	t.Logf("killed the manager %d times in %s", kills, time.Since(begin).Round(time.Second))
	if kills < len(writes)/2 {
		t.Errorf("the manager was killed %d times only for %d writes, want fewer of them at the same time", kills, len(writes))
	}
	for _, number := range missed {
		// With all writes counted a manager that comes later may need fewer.
		if !*prove {
			t.Errorf("the manager was never killed behind write %d, %s", number, writes[number-1])
		}
	}
}

// killBehindMutex drains one node, and kills the manager behind a write of the mutex, unless
// a node of another story holds it all the time.
func (w *world) killBehindMutex(number int) {
	w.t.Helper()
	d := w.drill(fmt.Sprintf("mutex-%d", number), 0)
	d.killAtMutex = number
	w.play(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mutexWrites) < number {
		w.t.Logf("the node was drained beside the holder of the mutex, with %q", d.mutexWrites)
	}
}

// killRounds is how often a write is waited for. One that the API server accepts
// just when the manager dies for another node is not seen.
const killRounds = 3

// killBehind drains a node for each of these writes, and kills the manager behind
// it. It returns those that have not been seen.
func (w *world) killBehind(round int, writes []int) (missed []int) {
	w.t.Helper()
	var drills []*drill
	for _, number := range writes {
		drills = append(drills, w.drill(fmt.Sprintf("kill%d-%02d", round, number), number))
	}
	w.play(drills...)
	for _, d := range drills {
		if written := d.written(); len(written) < d.killAt {
			w.t.Logf("the manager was not killed behind write %d in round %d: there were only\n%s", d.killAt, round, strings.Join(written, "\n"))
			missed = append(missed, d.killAt)
		}
	}
	return missed
}

// play drains all nodes, takes them down and up again, and wants everything to be
// as before.
func (w *world) play(drills ...*drill) {
	w.t.Helper()
	before := w.fingerprint()
	for _, d := range drills {
		w.maintainInPlace(d.node, minutes, d.node)
	}
	for _, d := range drills {
		w.awaitDrained(d.node)
		d.assertLocked()
	}
	for _, d := range drills {
		w.mark(corev1.ConditionFalse, w.podsOn(d.node)...)
		w.boot(d.node)
		w.setStage(d.node, v1alpha1.StageComplete)
	}
	for _, d := range drills {
		w.awaitRecord(d.node, "False", v1alpha1.ReasonReleasing)
		d.assertLocked()
		w.recover(d.node)
	}
	for _, d := range drills {
		w.awaitNothingLocked(d.node)
	}
	w.eventually("everything as before", func() (bool, any) {
		diff := cmp.Diff(before, w.fingerprint())
		return diff == "", diff
	})
}

// assertLocked wants the node to have all locks now.
func (d *drill) assertLocked() {
	d.t.Helper()
	for _, name := range d.budgets {
		if had := d.lockedBy(name); had != d.holder(d.node, d.node) {
			d.t.Errorf("budget %s is locked by %q, want %q; written so far:\n%s",
				name, had, d.holder(d.node, d.node), strings.Join(d.written(), "\n"))
		}
	}
}

// fingerprint is what a drain in place leaves as it was, one line for each object:
// the same pods on the same nodes.
func (w *world) fingerprint() []string {
	w.t.Helper()
	pods, budgets, nodes := &corev1.PodList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.NodeList{}
	w.must("list pods", w.client.List(w.ctx, pods, client.InNamespace(w.ns)))
	w.must("list budgets", w.client.List(w.ctx, budgets, client.InNamespace(w.ns)))
	w.must("list nodes", w.client.List(w.ctx, nodes, client.MatchingLabels{cluster.PoolLabel: w.cluster.Pool()}))
	var lines []string
	for _, p := range pods.Items {
		lines = append(lines, fmt.Sprintf("pod %s %s on %s, available %t, annotations %v", p.Name, p.UID, p.Spec.NodeName, available(&p), p.Annotations))
	}
	for _, b := range budgets.Items {
		lines = append(lines, fmt.Sprintf("budget %s, annotations %v", b.Name, b.Annotations))
	}
	for _, n := range nodes.Items {
		lines = append(lines, fmt.Sprintf("node %s, unschedulable %t, taints %v, annotations %v", n.Name, n.Spec.Unschedulable, n.Spec.Taints, n.Annotations))
	}
	slices.Sort(lines)
	return lines
}
