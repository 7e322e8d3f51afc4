package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

func limited(change ...func(*v1alpha1.NodeBudgetSpec)) func(w *world) {
	return func(w *world) { w.limitTo("shared", change...) }
}

func allows(n string) func(*v1alpha1.NodeBudgetSpec) {
	return func(s *v1alpha1.NodeBudgetSpec) { s.MaxUnavailable = new(intstr.Parse(n)) }
}

func over(selector *corev1.NodeSelector) func(*v1alpha1.NodeBudgetSpec) {
	return func(s *v1alpha1.NodeBudgetSpec) { s.NodeSelector = selector }
}

func oneZone(s *v1alpha1.NodeBudgetSpec) { s.TopologyKey = zoneLabel }

func maintains(names ...string) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) {
		s.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: terms(names)}
	}
}

// earlierRollout has another rollout start a node first.
func earlierRollout(name string) func(w *world) {
	return func(w *world) {
		w.start("earlier", maintains(name))
		w.decide()
		w.accept(w.of(name).Name)
		w.now = w.now.Add(time.Second)
	}
}

func inZone(name string) func(*corev1.Node) { return labelled(zoneLabel, name) }

func editedBudget(change func(*v1alpha1.NodeBudget)) func(w *world) {
	return func(w *world) { w.editBudget("shared", change) }
}

func TestNodeStartsIfEachNodeBudgetThatSelectsItAllowsIt(t *testing.T) {
	t.Parallel()
	all := created(unavailable("3"))
	near := named("a")
	near.NodeSelectorTerms[0].MatchFields[0].Operator = "Near"
	tell(t, map[string]story{
		"below the limit": {then(limited(allows("3")), all), []string{"a: Draining", "b: Draining", "c: Draining"}},
		"at the limit":    {then(limited(allows("2")), all), []string{"a: Draining", "b: Draining", "c wait: NodeBudget"}},
		"a percentage":    {then(limited(allows("67%")), all), []string{"a: Draining", "b: Draining", "c wait: NodeBudget"}},
		"a smaller one is at its limit": {then(limited(allows("3")), func(w *world) { w.limitTo("tight", over(named("b"))) }, node("b", unschedulable), func(w *world) {
			w.limitTo("tighter", over(&corev1.NodeSelector{NodeSelectorTerms: terms([]string{"b", "c"})}))
		}, all), []string{"a: Draining", "b: Draining", "c wait: NodeBudget"}},
		"it selects other nodes":   {then(limited(over(pool("b"))), all), []string{"a: Draining", "b: Draining", "c: Draining"}},
		"nodes of another rollout": {then(limited(), earlierRollout("a"), created(maintains("b", "c"), unavailable("2"))), []string{"b c wait: NodeBudget"}},
		"another rollout gives back": {
			then(limited(), earlierRollout("a"), func(w *world) { w.succeedAccepted("a") }, created(maintains("b", "c"), unavailable("2"))),
			[]string{"b: Draining", "c wait: NodeBudget"},
		},
		"a cordoned node":          {then(limited(), node("c", unschedulable), created(maintains("a", "b"))), []string{"a b wait: NodeBudget"}},
		"a node that is not Ready": {then(limited(), node("c", notReady), created(maintains("a", "b"))), []string{"a b wait: NodeBudget"}},
		"a node is cordoned itself": {
			then(limited(), node("b", unschedulable), all), []string{"b: Draining", "a c wait: NodeBudget"},
		},
		"a failed node that stays drained": {
			then(limited(), begun(twoMayFail), onA((*world).drain), passes(2*time.Hour)),
			[]string{"a failed: WorkTimedOut", "b c wait: NodeBudget", "Degraded=True: NodesFailed"},
		},
		"a done node that stays drained": {then(limited(), begun(stayDrained), onA((*world).drain)), []string{"1 done", "b c wait: NodeBudget"}},
		"another zone": {
			then(node("a", inZone("1")), node("b", inZone("2")), node("c", inZone("1")), limited(allows("3"), oneZone), all),
			[]string{"a: Draining", "c: Draining", "b wait: NodeBudget"},
		},
		"no selector":              {then(limited(over(nil)), all), []string{"a b c wait: NodeBudget"}},
		"an invalid selector":      {then(limited(over(near)), all), []string{"a b c wait: NodeBudget"}},
		"an invalid number":        {then(limited(allows("none")), all), []string{"a b c wait: NodeBudget"}},
		"an invalid one elsewhere": {then(limited(over(pool("b")), allows("none")), all), []string{"a: Draining", "b: Draining", "c: Draining"}},
		"it is being deleted": {
			then(limited(), editedBudget(func(b *v1alpha1.NodeBudget) { b.DeletionTimestamp = new(metav1.Now()) }), all),
			[]string{"a: Draining", "b: Draining", "c: Draining"},
		},
		"its limit is raised": {
			then(limited(), all, settled, editedBudget(func(b *v1alpha1.NodeBudget) { allows("2")(&b.Spec) })),
			[]string{"a: Draining", "b: Draining", "c wait: NodeBudget"},
		},
		"it is deleted": {
			then(limited(), all, settled, func(w *world) { w.deleteBudget("shared") }), []string{"a: Draining", "b: Draining", "c: Draining"},
		},
		"its status cannot be written": {
			then(limited(allows("3")), func(w *world) { w.refusedBudgets["shared"] = "forbidden\nby a test" }, all), []string{"a b c wait: NodeBudget"},
		},
		"the limit of the rollout is lower": {then(limited(allows("2")), created()), []string{"a: Draining", "b c wait: MaxUnavailable"}},
	})
}

// Nodes that wait for different budgets are shown apart.
func TestNodesAreGroupedByTheNodeBudgetThatHoldsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c", "d")
	for _, pair := range [][]string{{"a", "b"}, {"c", "d"}} {
		w.limitTo("of-"+pair[0], over(&corev1.NodeSelector{NodeSelectorTerms: terms(pair)}))
	}
	w.start("patch", unavailable("4"))
	w.settle()
	r, _ := find(w.rollouts, "patch")
	difference.None(t, "status", []string{"a: Draining", "c: Draining", "b wait: NodeBudget", "d wait: NodeBudget"}, shown(&r.Status))
}

func TestNodeBudgetReportsItsNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(w *world)
		nodes   int32
		want    []string
	}{
		"no node":          {limited(over(pool("b"))), 0, nil},
		"nothing is wrong": {limited(), 3, nil},
		"some are started": {then(limited(allows("3")), node("c", unschedulable), created(maintains("a", "b"), unavailable("2"))), 3, []string{"a patch", "b patch"}},
		"it is invalid":    {then(limited(over(nil)), created()), 0, nil},
		"nodes are given back": {
			then(limited(), started(maintains("a")), func(w *world) { w.succeed("a") }), 3, nil,
		},
		"one stays drained": {then(limited(), begun(stayDrained), onA((*world).drain)), 3, []string{"a patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b", "c")
			test.happens(w)
			w.settle()
			status := w.budgets[0].Status
			var working []string
			for _, entry := range status.Working {
				working = append(working, entry.Name+" "+entry.NodeRolloutName)
				if entry.NodeMaintenanceName != w.of(entry.Name).Name {
					t.Errorf("node %s is under %s", entry.Name, entry.NodeMaintenanceName)
				}
			}
			difference.None(t, "nodes under maintenance", test.want, working)
			if status.NodeCount != test.nodes || status.ObservedGeneration != 1 {
				t.Errorf("it has %d nodes, want %d, and is of generation %d", status.NodeCount, test.nodes, status.ObservedGeneration)
			}
			golden.Message(t, status.Summary)
		})
	}
}

// A manager counted a node and died. Nobody knows whether it has started until the API server is asked.
func TestNodeThatABudgetCountsAndNobodyCouldReadIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	limited()(w)
	created(unavailable("2"))(w)
	w.apply(rollout.Decide(w.snapshot()), stopAfter(1))
	entries := w.budgets[0].Status.Working
	if len(entries) != 1 || entries[0].Name != "a" || len(w.maintenances) > 0 {
		t.Fatalf("the budget counts %v", entries)
	}
	w.unknown = map[string]bool{entries[0].NodeMaintenanceName: true}
	for range 2 {
		if d := w.decide(); len(d.Rollouts[0].Starts) > 0 || len(d.Budgets[0].Status.Working) != 1 {
			t.Fatalf("while it is unknown %v start, and it counts %v", startersOf(t, d), d.Budgets[0].Status.Working)
		}
	}
	// If it has not started, its start is a write of the budget with an effect: a second manager, which
	// starts another node, has an old state of it.
	w.unknown = map[string]bool{}
	if d := w.decide(); startersOf(t, d)["a"] != "" {
		t.Error("a node starts that the budget counts already")
	}
	if d := w.decide(); startersOf(t, d)["a"] == "" || !slices.Equal(d.Rollouts[0].Budgets, []string{"shared"}) {
		t.Errorf("then %v start", startersOf(t, d))
	}
	w.settle()
}

// Users with the right to create NodeBudgets stop all rollouts, and see why. They cost no time.
func TestTooManyNodeBudgetsStopAllRollouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	for i := range 5000 {
		w.limitTo(fmt.Sprintf("b%d", i), over(pool("nowhere")))
	}
	w.start("patch")
	d := rollout.Decide(w.snapshot())
	waits := d.Rollouts[0].Status.Waiting
	if len(d.Rollouts[0].Starts)+len(d.Budgets) > 0 || len(waits) != 1 || waits[0].Reason != v1alpha1.RolloutWaitsForNodeBudget {
		t.Fatalf("it starts %v, writes %d budgets and shows %+v", startersOf(t, d), len(d.Budgets), waits)
	}
	golden.Message(t, waits[0].Message)
	w.budgets = w.budgets[:nodebudget.Max]
	if d := rollout.Decide(w.snapshot()); len(d.Rollouts[0].Starts) != 1 || len(d.Budgets) != nodebudget.Max {
		t.Errorf("with %d budgets %v start", len(w.budgets), startersOf(t, d))
	}
}

// What others write into the status of a budget frees no node, takes none and reaches no message.
func TestForgedStatusOfANodeBudgetChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	limited()(w)
	started(unavailable("3"))(w)
	forged := v1alpha1.NodeBudgetStatus{NodeCount: 900, UnavailableCount: -7, Summary: "all\nis well"}
	for i := range 256 {
		forged.Working = append(forged.Working, v1alpha1.BudgetNode{Name: "b", NodeMaintenanceName: fmt.Sprintf("x\n%d", i)})
	}
	w.editBudget("shared", func(b *v1alpha1.NodeBudget) { b.Status = forged })
	d := w.decide()
	if by := startersOf(t, d); len(by) > 0 {
		t.Errorf("%v start", by)
	}
	status := d.Budgets[0].Status
	if len(status.Working) != 1 || status.Working[0].Name != "a" || status.UnavailableCount != 1 || strings.Contains(status.Summary, "\n") {
		t.Errorf("it reports %+v", status)
	}
}

// The list of a budget is bounded. While it is full, no node starts.
func TestStatusOfANodeBudgetIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 600 {
		w.join(fmt.Sprintf("n%03d", n))
	}
	for i := range 3 {
		w.start(fmt.Sprintf("r%d", i), unavailable("100%"))
	}
	w.decide()
	limited(allows("100%"))(w)
	for range 2 {
		if by := startersOf(t, w.decide()); len(by) > 0 {
			t.Errorf("%d nodes start", len(by))
		}
	}
	if status := w.budgets[0].Status; len(status.Working) != 256 || status.UnavailableCount < 512 {
		t.Errorf("it lists %d of %d nodes", len(status.Working), status.UnavailableCount)
	}
}
