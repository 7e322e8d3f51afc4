package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// aBudget returns a NodeBudget over the nodes of rollouts.
func aBudget(name string, most int, rollouts ...string) *v1alpha1.NodeBudget {
	return &v1alpha1.NodeBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.NodeBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(int32(most))),
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rollout", Operator: corev1.NodeSelectorOpIn, Values: rollouts}},
			}}},
		},
	}
}

// newSharedFleet returns a fleet half of which belongs to rollout kernel and half to rollout other. Each
// would maintain all of its nodes at once, and one budget limits both.
func newSharedFleet(t *testing.T, nodes, limit int) *fleet {
	t.Helper()
	f := newFleet(t, nodes, nodes)
	f.limit = limit
	other := aRollout("other")
	f.rollout("kernel").Spec.DeepCopyInto(&other.Spec)
	other.Spec.NodeSelector = aRollout("other").Spec.NodeSelector
	f.must(f.api.Create(t.Context(), other))
	f.must(f.api.Create(t.Context(), aBudget("shared", limit, "kernel", "other")))
	for i := nodes / 2; i < nodes; i++ {
		node := &corev1.Node{}
		f.must(f.api.Get(t.Context(), client.ObjectKey{Name: fmt.Sprintf("node-%03d", i)}, node))
		node.Labels["rollout"] = "other"
		f.must(f.api.Update(t.Context(), node))
	}
	return f
}

func (w *world) budget(name string) *v1alpha1.NodeBudget {
	w.t.Helper()
	found := &v1alpha1.NodeBudget{}
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Name: name}, found))
	return found
}

func (f *fleet) maintenances() []*v1alpha1.NodeMaintenance {
	f.t.Helper()
	var all v1alpha1.NodeMaintenanceList
	f.must(f.api.List(f.t.Context(), &all))
	return kube.Pointers(all.Items)
}

// Two rollouts share a budget. The manager may be killed behind any of its writes, also between the
// write of the budget and that of the rollout: the next one comes to the same end.
func TestManagerKilledBehindEveryWriteUnderANodeBudget(t *testing.T) {
	t.Parallel()
	assertKilledBehindEveryWrite(t, "2 of 2 nodes done", func(t *testing.T) *fleet {
		t.Helper()
		return newSharedFleet(t, 4, 2)
	})
}

// A budget is written before the rollout whose start it counts, and that before the NodeMaintenance.
func TestNodeBudgetIsWrittenBeforeAStart(t *testing.T) {
	t.Parallel()
	f := newSharedFleet(t, 2, 1)
	m := f.manager(nil)
	m.pass()
	var writes []string
	for _, write := range f.api.Writes() {
		if !strings.HasPrefix(write, "patch NodeRollout") {
			writes = append(writes, strings.ReplaceAll(write, f.maintenances()[0].Name, "NAME"))
		}
	}
	at := func(write string) int { return slices.Index(writes, write) }
	counted, recorded, created := at("patch status of NodeBudget shared"), at("patch status of NodeRollout kernel"), at("create NodeMaintenance NAME")
	if counted < 0 || counted > recorded || recorded > created || len(f.maintenances()) != 1 {
		t.Errorf("it writes %q", writes)
	}
	working := f.budget("shared").Status.Working
	if len(working) != 1 || working[0].NodeRolloutName != "kernel" || working[0].NodeMaintenanceName != f.maintenances()[0].Name {
		t.Errorf("the budget counts %v", working)
	}
	m.sync()
	before := len(f.api.Writes())
	for range 5 {
		m.pass()
		m.sync()
	}
	if more := f.api.Writes()[before:]; len(more) > 1 {
		t.Errorf("while nothing changes it writes %q", more)
	}
}

// Two managers whose caches are behind start nodes of two rollouts at the same time. The budget is
// never exceeded.
func TestTwoManagersRaceUnderANodeBudget(t *testing.T) {
	t.Parallel()
	f := newSharedFleet(t, 100, 8)
	replicas := []*replica{f.manager(nil), f.manager(nil)}
	for _, one := range replicas {
		one.created = f.watch
	}
	for round := 0; !f.complete(); round++ {
		if round > 3000 {
			t.Fatalf("there is no end: %+v", f.budget("shared").Status)
		}
		f.race(round, replicas)
		f.clock.Step(3 * time.Second)
		f.advance(func(m *v1alpha1.NodeMaintenance) bool { return (len(m.Name)+round)%3 > 0 })
	}
	if all := f.maintenances(); f.broken != "" || len(all) != 100 {
		t.Errorf("there are %d NodeMaintenances; %s", len(all), f.broken)
	}
}

// So it is if each is killed again and again, behind any of its writes.
func TestKilledManagersRaceUnderANodeBudget(t *testing.T) {
	t.Parallel()
	newSharedFleet(t, 40, 4).assertKilledManagersRace(40, 4000, rand.New(rand.NewPCG(3, 4)))
}

// The write of a budget that hangs delays only rollouts that start nodes under it.
func TestHangingNodeBudgetDelaysNoOtherRollout(t *testing.T) {
	t.Parallel()
	f := newSharedFleet(t, 4, 1)
	f.must(f.api.Delete(t.Context(), f.budget("shared")))
	f.must(f.api.Create(t.Context(), aBudget("narrow", 1, "kernel")))
	m := f.manager(nil)
	release := m.hang("status of narrow")
	m.decideOnce()
	f.await("the other rollout starts", func() bool { return len(f.maintenances()) == 2 })
	for _, one := range f.maintenances() {
		if one.Labels[v1alpha1.RolloutLabel] != "other" {
			t.Errorf("%s has started", one.Name)
		}
	}
	release()
	m.flights.wait()
	m.sync()
	if m.pass(); len(f.maintenances()) != 3 {
		t.Errorf("afterwards there are %d NodeMaintenances", len(f.maintenances()))
	}
}

// A budget that cannot be written holds its nodes and says so; other work of the rollout goes on.
func TestRefusedNodeBudgetHoldsItsNodes(t *testing.T) {
	t.Parallel()
	f := newSharedFleet(t, 4, 1)
	f.refuse("patch status of NodeBudget", errForbidden)
	m := f.manager(nil)
	for range 5 {
		m.sync()
		m.pass()
	}
	waits := f.rollout("kernel").Status.Waiting
	if len(waits) != 1 || waits[0].Reason != v1alpha1.RolloutWaitsForNodeBudget || !strings.Contains(waits[0].Message, "denied by a test") || len(f.maintenances()) > 0 {
		t.Errorf("while it is refused the status is %+v, with %d NodeMaintenances", waits, len(f.maintenances()))
	}
	if tries := len(f.api.Writes()); tries > 12 {
		t.Errorf("it writes %d times", tries)
	}
	f.api.Refuse = nil
	f.run()
	if f.broken != "" {
		t.Error(f.broken)
	}
}

// Budgets are reported also while there is no rollout.
func TestNodeBudgetIsReportedWithoutRollouts(t *testing.T) {
	t.Parallel()
	node := aNode("node-1")
	node.Spec.Unschedulable = true
	w := newWorld(t, aBudget("shared", 2, "kernel"), node, aNode("node-2"))
	m := w.manager(nil)
	m.pass()
	if status := w.budget("shared").Status; status.NodeCount != 2 || status.UnavailableCount != 1 || !strings.Contains(status.Summary, "node-1 (cordoned)") {
		t.Errorf("its status is %+v", status)
	}
	m.sync()
	m.pass()
	if writes := w.api.Writes(); len(writes) != 1 {
		t.Errorf("it writes %q", writes)
	}
}

// A manager does not know that rollout kernel was resumed and has started a node. It knows the state of
// the other rollout, which no write of that one protects, and does not exceed the budget of both: it
// either has an old state of the budget, or reads what the budget names.
func TestStaleManagerDoesNotExceedANodeBudget(t *testing.T) {
	t.Parallel()
	for name, knowsBudget := range map[string]bool{"knows the budget": true, "has an old state of the budget": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newSharedFleet(t, 2, 1)
			stale := f.pausedFor()
			fresh := f.manager(nil)
			release := fresh.hang("status of other")
			fresh.decideOnce()
			f.await("kernel starts", func() bool { return len(f.maintenances()) == 1 })
			if knowsBudget {
				f.must(f.api.List(t.Context(), &stale.shownBudgets))
			}
			stale.caughtUp = true
			stale.pass()
			release()
			fresh.flights.wait()
			if f.watch(); f.broken != "" {
				t.Error(f.broken)
			}
		})
	}
}

// pausedFor returns a manager for which rollout kernel is paused for ever. It is not.
func (f *fleet) pausedFor() *replica {
	f.t.Helper()
	kernel := f.rollout("kernel")
	kernel.Spec.State = v1alpha1.RolloutPaused
	f.must(f.api.Update(f.t.Context(), kernel))
	stale := f.manager(nil)
	kernel.Spec.State = v1alpha1.RolloutRunning
	f.must(f.api.Update(f.t.Context(), kernel))
	return stale
}

// A manager that has run for long sees what another one has counted, and is about to create.
func TestStartThatAnotherManagerIsMakingCounts(t *testing.T) {
	t.Parallel()
	same := newSharedFleet(t, 2, 1)
	same.manager(nil).pass()
	f := newSharedFleet(t, 2, 1)
	long := f.manager(nil)
	f.clock.Step(time.Hour)
	another := f.manager(nil)
	release := another.hang(same.maintenances()[0].Name)
	another.decideOnce()
	f.await("the start is recorded", func() bool { return len(f.rollout("kernel").Status.Working) == 1 })
	for range 5 {
		long.sync()
		long.pass()
		f.clock.Step(time.Second)
	}
	release()
	another.flights.wait()
	if f.watch(); f.broken != "" || len(f.maintenances()) != 1 {
		t.Errorf("there are %d NodeMaintenances; %s", len(f.maintenances()), f.broken)
	}
}
