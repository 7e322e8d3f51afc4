package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

func forAll(s *v1alpha1.NodeBudgetSpec) { s.AppliesTo = v1alpha1.NodeBudgetOfAll }

// requested has a user create a NodeMaintenance over some nodes.
func requested(name string, nodes ...string) func(w *world) {
	return func(w *world) { w.requestNodes(name, &corev1.NodeSelector{NodeSelectorTerms: terms(nodes)}) }
}

// exempt has the bridge create a NodeMaintenance over one node.
func exempt(name, node string) func(w *world) {
	return func(w *world) {
		w.requestNodes(name, named(node), ofBridge)
	}
}

func ofBridge(m *v1alpha1.NodeMaintenance) {
	m.Labels[v1alpha1.BridgeLabel], m.Annotations[v1alpha1.BridgeMachineAnnotation] = "capi", "default/machine"
}

func shutdown(node string) func(w *world) {
	return func(w *world) {
		w.requestNodes(maintenance.ShutdownName(node), named(node), func(m *v1alpha1.NodeMaintenance) {
			m.Labels[v1alpha1.CreatedByLabel] = v1alpha1.CreatedByNodeAgent
		})
	}
}

func inStage(stage v1alpha1.NodeMaintenanceStage) func(*v1alpha1.NodeMaintenance) {
	return func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = stage }
}

func changed(name string, change func(*v1alpha1.NodeMaintenance)) func(w *world) {
	return func(w *world) { w.editMaintenance(name, change) }
}

func finished(name string) func(w *world) { return func(w *world) { w.finishRequest(name) } }

func deleted(name string) func(w *world) { return func(w *world) { w.deleteMaintenance(name) } }

func anyone(*v1alpha1.NodeMaintenance) bool { return true }

// admitted decides, and has NodeMaintenances take their nodes, until nothing changes.
func admitted(w *world) {
	w.t.Helper()
	for range 4 {
		w.decide()
		w.take(w.budgets, anyone)
	}
	w.checkIdle()
}

// allotted shows the nodes in the status of each budget, how many are unavailable, and which nodes
// NodeMaintenances of users hold.
func (w *world) allotted() (lines []string) {
	for _, b := range w.budgets {
		line := fmt.Sprintf("%s (%d)", b.Name, b.Status.UnavailableCount)
		for _, entry := range b.Status.Working {
			by := entry.NodeRolloutName
			if m, _ := find(w.maintenances, entry.NodeMaintenanceName); by == "" && entry.NodeMaintenanceUID == m.UID {
				by = m.Name
			}
			line += " " + entry.Name + "/" + by
		}
		lines = append(lines, line)
	}
	held := "held"
	for _, n := range w.nodes {
		for _, holder := range cordon.Holders(n) {
			if m, at := find(w.maintenances, holder); at < 0 || m.Labels[v1alpha1.RolloutLabel] == "" {
				held += " " + n.Name + "/" + holder
			}
		}
	}
	return append(lines, held)
}

// tellOfUsers runs stories of three nodes a, b and c of users.
func tellOfUsers(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b", "c")
			s.happens(w)
			admitted(w)
			for _, b := range w.budgets {
				golden.Message(t, b.Name, b.Status.Summary)
			}
			difference.None(t, "nodes", s.want, w.allotted())
		})
	}
}

func TestNodeBudgetAdmitsNodesOfUsers(t *testing.T) {
	t.Parallel()
	shared := limited(forAll)
	tellOfUsers(t, map[string]story{
		"below the limit": {
			then(limited(forAll, allows("2")), requested("first", "a"), requested("second", "b")),
			[]string{"shared (2) a/first b/second", "held a/first b/second"},
		},
		"at the limit": {then(shared, requested("first", "a"), requested("second", "b")), []string{"shared (1) a/first", "held a/first"}},
		"the oldest first": {
			then(shared, requested("old", "c"), requested("an-other", "b"), requested("another", "a")), []string{"shared (1) c/old", "held c/old"},
		},
		"the oldest first of one node": {
			then(shared, requested("old", "a"), requested("another", "a")), []string{"shared (1) a/old", "held a/another a/old"},
		},
		"many nodes": {
			then(limited(forAll, allows("2")), requested("first", "a", "b", "c")), []string{"shared (2) a/first b/first", "held a/first b/first"},
		},
		"many nodes, one is given back": {
			then(limited(forAll, allows("2")), requested("first", "a", "b", "c"), admitted, func(w *world) { w.giveNodeBack("first", "a") }),
			[]string{"shared (2) b/first c/first", "held b/first c/first"},
		},
		"stage Cordon": {
			then(shared, requested("first", "a"), changed("first", inStage(v1alpha1.StageCordon)), requested("second", "b")),
			[]string{"shared (1) a/first", "held a/first"},
		},
		"stage Idle": {then(shared, requested("first", "a"), changed("first", inStage(v1alpha1.StageIdle)), requested("second", "b")), []string{"shared (1) b/second", "held b/second"}},
		"an invalid selector of a user": {
			then(shared, requested("first"), changed("first", func(m *v1alpha1.NodeMaintenance) { m.Spec.NodeSelector = nil }), requested("second", "b")),
			[]string{"shared (1) b/second", "held b/second"},
		},
		"a budget of rollouts":      {then(limited(), requested("first", "a"), requested("second", "b")), []string{"shared (2)", "held a/first b/second"}},
		"a budget of other nodes":   {then(limited(forAll, over(pool("b"))), requested("first", "a")), []string{"shared (0)", "held a/first"}},
		"another node is not Ready": {then(shared, node("c", notReady), requested("first", "a")), []string{"shared (1)", "held"}},
		"a node is not Ready itself": {
			then(shared, node("b", notReady), requested("first", "a"), requested("second", "b")), []string{"shared (1) b/second", "held b/second"},
		},
		"a node is cordoned itself": {
			then(shared, node("b", unschedulable), requested("first", "a"), requested("second", "b")), []string{"shared (1) b/second", "held b/second"},
		},
		"another zone": {
			then(node("a", inZone("1")), node("b", inZone("2")), node("c", inZone("1")), limited(forAll, allows("3"), oneZone), requested("first", "a", "b", "c")),
			[]string{"shared (2) a/first c/first", "held a/first c/first"},
		},
	})
}

func TestEachNodeBudgetHasToAdmitANodeOfAUser(t *testing.T) {
	t.Parallel()
	tellOfUsers(t, map[string]story{
		"one of two budgets is at its limit": {
			then(limited(forAll), node("c", unschedulable), func(w *world) {
				w.editBudget("shared", func(b *v1alpha1.NodeBudget) { b.Spec.NodeSelector = named("a") })
			},
				func(w *world) { w.limitTo("tight", forAll) }, requested("first", "a")),
			[]string{"shared (0)", "tight (1)", "held"},
		},
		"the other of two budgets is at its limit": {
			then(limited(forAll), node("c", unschedulable), func(w *world) { w.limitTo("tight", forAll, over(named("a"))) }, requested("first", "a")),
			[]string{"shared (1)", "tight (0)", "held"},
		},
		"two budgets allow it": {
			then(limited(forAll), func(w *world) { w.limitTo("tight", forAll) }, requested("first", "a", "b")), []string{"shared (1) a/first", "tight (1) a/first", "held a/first"},
		},
		"a budget of rollouts counts beside": {
			then(limited(forAll), func(w *world) { w.limitTo("rollouts") }, requested("first", "a"), created()), []string{"shared (1) a/first", "rollouts (1)", "held a/first"},
		},
	})
}

func TestUsersAndRolloutsShareNodeBudgets(t *testing.T) {
	t.Parallel()
	shared := limited(forAll)
	tellOfUsers(t, map[string]story{
		"a user comes before a rollout":      {then(shared, created(), requested("first", "b")), []string{"shared (1) b/first", "held b/first"}},
		"a rollout has started first":        {then(shared, started(), requested("first", "b")), []string{"shared (1) a/patch", "held"}},
		"a rollout has given its node back":  {then(shared, started(), requested("first", "b"), func(w *world) { w.succeed("a") }), []string{"shared (1) b/first", "held b/first"}},
		"a rollout starts the other nodes":   {then(limited(forAll, allows("3")), requested("first", "b"), created(unavailable("3"))), []string{"shared (3) a/patch b/first c/patch", "held b/first"}},
		"a rollout starts the same node":     {then(shared, started(), requested("first", "a")), []string{"shared (1) a/patch", "held"}},
		"a rollout has cordoned the node":    {then(shared, begun(), requested("first", "a")), []string{"shared (1) a/patch", "held a/first"}},
		"a rollout ends on the node":         {then(shared, begun(), requested("first", "a"), admitted, func(w *world) { w.succeedAccepted("a") }), []string{"shared (1) a/first", "held a/first"}},
		"a node of a bridge":                 {then(shared, requested("first", "a"), exempt("machine", "b"), requested("second", "c")), []string{"shared (2) a/first", "held a/first b/machine"}},
		"a node that shuts down":             {then(shared, requested("first", "a"), shutdown("b")), []string{"shared (2) a/first", "held a/first b/node-shutdown-b"}},
		"a user beside a bridge":             {then(shared, node("c", unschedulable), exempt("machine", "b"), requested("second", "b")), []string{"shared (2) b/second", "held b/machine b/second"}},
		"a bridge takes a node that waits":   {then(shared, requested("first", "a", "b"), admitted, exempt("machine", "b")), []string{"shared (2) a/first b/first", "held a/first b/first b/machine"}},
		"a node that no budget selects":      {then(shared, node("a", func(n *corev1.Node) { n.Labels[poolLabel] = "b" }), requested("first", "a", "b")), []string{"shared (1) b/first", "held a/first b/first"}},
		"a budget of rollouts is at a limit": {then(limited(forAll, allows("3")), func(w *world) { w.limitTo("rollouts") }, node("c", unschedulable), requested("first", "a")), []string{"shared (2) a/first", "rollouts (2)", "held a/first"}},
	})
}

func TestNodeBudgetThatCannotBeDecidedHoldsNodesOfUsers(t *testing.T) {
	t.Parallel()
	near := named("a")
	near.NodeSelectorTerms[0].MatchFields[0].Operator = "Near"
	first := requested("first", "a")
	tellOfUsers(t, map[string]story{
		"an invalid selector":         {then(limited(forAll, over(near)), first), []string{"shared (0)", "held"}},
		"no selector":                 {then(limited(forAll, over(nil)), first), []string{"shared (0)", "held"}},
		"an invalid number":           {then(limited(forAll, allows("none")), first), []string{"shared (0)", "held"}},
		"an invalid number elsewhere": {then(limited(forAll, over(pool("b")), allows("none")), first), []string{"shared (0)", "held a/first"}},
		"a refused write":             {then(limited(forAll), func(w *world) { w.refusedBudgets["shared"] = "forbidden\nby a test" }, first), []string{"shared (0)", "held"}},
		"it becomes invalid": {
			then(limited(forAll), requested("first", "a"), admitted, editedBudget(func(b *v1alpha1.NodeBudget) { allows("none")(&b.Spec) }), requested("second", "b")),
			[]string{"shared (0) a/first", "held a/first"},
		},
		"a refused write of another": {
			then(limited(forAll), func(w *world) { w.limitTo("tight", forAll) }, func(w *world) { w.refusedBudgets["tight"] = "forbidden" }, first),
			[]string{"shared (0)", "tight (0)", "held"},
		},
	})
}

func TestNodeBudgetChangesWhileUsersHaveNodes(t *testing.T) {
	t.Parallel()
	two := then(limited(forAll), requested("first", "a"), requested("second", "b"), admitted)
	scope := func(of v1alpha1.NodeBudgetScope) func(w *world) {
		return editedBudget(func(b *v1alpha1.NodeBudget) { b.Spec.AppliesTo = of })
	}
	tellOfUsers(t, map[string]story{
		"its limit is raised":  {then(two, editedBudget(func(b *v1alpha1.NodeBudget) { allows("2")(&b.Spec) })), []string{"shared (2) a/first b/second", "held a/first b/second"}},
		"its limit is lowered": {then(limited(forAll, allows("2")), requested("first", "a", "b"), admitted, editedBudget(func(b *v1alpha1.NodeBudget) { allows("1")(&b.Spec) })), []string{"shared (2) a/first b/first", "held a/first b/first"}},
		"it is deleted":        {then(two, func(w *world) { w.deleteBudget("shared") }), []string{"held a/first b/second"}},
		"it is being deleted": {
			then(limited(forAll), editedBudget(func(b *v1alpha1.NodeBudget) { b.DeletionTimestamp = new(metav1.Now()) }), requested("first", "a", "b")),
			[]string{"shared (0)", "held a/first b/first"},
		},
		"it applies to rollouts":                  {then(two, scope(v1alpha1.NodeBudgetOfRollouts)), []string{"shared (2)", "held a/first b/second"}},
		"it applies to rollouts and then to all":  {then(two, scope(v1alpha1.NodeBudgetOfRollouts), admitted, scope(v1alpha1.NodeBudgetOfAll)), []string{"shared (2) a/first b/second", "held a/first b/second"}},
		"nodes were cordoned before":              {then(requested("first", "a", "b"), admitted, limited(forAll), requested("second", "c")), []string{"shared (2) a/first b/first", "held a/first b/first"}},
		"another one is created":                  {then(two, func(w *world) { w.limitTo("tight", forAll) }), []string{"shared (1) a/first", "tight (1) a/first", "held a/first"}},
		"a maintenance is completed":              {then(two, changed("first", inStage(v1alpha1.StageComplete))), []string{"shared (1)", "held a/first"}},
		"a maintenance is complete":               {then(two, changed("first", inStage(v1alpha1.StageComplete)), finished("first")), []string{"shared (1) b/second", "held b/second"}},
		"a maintenance is deleted":                {then(two, deleted("first")), []string{"shared (1)", "held a/first"}},
		"a maintenance is gone":                   {then(two, deleted("first"), finished("first")), []string{"shared (1) b/second", "held b/second"}},
		"a maintenance is gone before it cordons": {then(limited(forAll), requested("first", "a"), requested("second", "b"), settled, deleted("first")), []string{"shared (1) b/second", "held b/second"}},
		"another of its name": {
			then(two, deleted("first"), finished("first"), requested("first", "a")), []string{"shared (1) b/second", "held b/second"},
		},
		"its node leaves the selection": {then(two, node("a", func(n *corev1.Node) { n.Labels[poolLabel] = "b" })), []string{"shared (1) b/second", "held a/first b/second"}},
		"its node is gone":              {then(two, func(w *world) { w.deleteNode("a") }), []string{"shared (1) b/second", "held b/second"}},
		"a younger one takes over a node": {
			then(limited(forAll), requested("first", "a"), requested("second", "a"), requested("third", "b"), admitted, deleted("first"), finished("first")),
			[]string{"shared (1) a/second", "held a/second"},
		},
	})
}

// A NodeMaintenance that has the name of one that was admitted and is gone, and another UID, waits.
func TestNodeMaintenanceOfTheSameNameIsNotAdmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	then(limited(forAll), requested("older", "b"), requested("first", "a"))(w)
	w.editBudget("shared", func(b *v1alpha1.NodeBudget) {
		b.Status.Working = []v1alpha1.BudgetNode{{Name: "a", NodeMaintenanceName: "first", NodeMaintenanceUID: "earlier"}}
	})
	if taken := w.take(w.budgets, anyone); len(taken) > 0 {
		t.Errorf("%v are taken", taken)
	}
	admitted(w)
	difference.None(t, "nodes", []string{"shared (1) b/older", "held b/older"}, w.allotted())
}

// A decision that a user's NodeMaintenance has not acted on is kept from rollouts.
func TestRolloutDoesNotStartANodeThatAUserWasAdmittedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	then(limited(forAll, allows("3")), requested("first", "a"), created(unavailable("3")))(w)
	w.settle()
	r, _ := find(w.rollouts, "patch")
	difference.None(t, "status", []string{"b: Draining", "c: Draining", "a wait: OtherMaintenance"}, shown(&r.Status))
	difference.None(t, "nodes", []string{"shared (3) a/first b/patch c/patch", "held"}, w.allotted())
}

// working returns the nodes that a decision lists in its budgets.
func working(d *rollout.Decision) (lines []string) {
	for _, b := range d.Budgets {
		line := b.Budget.Name
		for _, entry := range b.Status.Working {
			line += fmt.Sprintf(" %s/%s/%s", entry.Name, entry.NodeMaintenanceName, entry.NodeMaintenanceUID)
		}
		lines = append(lines, line)
	}
	return lines
}

func listed(w *world, budget, node, name string) {
	m, _ := find(w.maintenances, name)
	w.editBudget(budget, func(b *v1alpha1.NodeBudget) {
		b.Status.Working = append(slices.Clone(b.Status.Working), v1alpha1.BudgetNode{Name: node, NodeMaintenanceName: name, NodeMaintenanceUID: m.UID})
	})
}

// What others write into the status of a budget admits nothing but what it says itself, and is mended.
func TestForgedStatusOfANodeBudgetAdmitsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	then(limited(forAll), requested("first", "a"), requested("second", "b"), admitted)(w)
	second, _ := find(w.maintenances, "second")
	forged := v1alpha1.NodeBudgetStatus{NodeCount: 900, Summary: "all\nis well"}
	for i := range 256 {
		forged.Working = append(forged.Working, v1alpha1.BudgetNode{
			Name: []string{"b", "c"}[i%2], NodeMaintenanceName: "second", NodeMaintenanceUID: types.UID(fmt.Sprint("x", i)), NodeRolloutName: "patch",
		})
	}
	forged.Working = append(forged.Working, v1alpha1.BudgetNode{Name: "c", NodeMaintenanceName: "second", NodeMaintenanceUID: second.UID})
	w.editBudget("shared", func(b *v1alpha1.NodeBudget) { b.Status = forged })
	if taken := w.take(w.budgets, anyone); len(taken) > 0 {
		t.Errorf("%v are taken", taken)
	}
	admitted(w)
	difference.None(t, "nodes", []string{"shared (1) a/first", "held a/first"}, w.allotted())
	if strings.Contains(w.budgets[0].Status.Summary, "\n") {
		t.Errorf("it says %q", w.budgets[0].Status.Summary)
	}
}

// A summary names some of many nodes that wait.
func TestSummaryOfANodeBudgetNamesNodesThatWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 600 {
		w.join(fmt.Sprintf("n%03d", n))
	}
	limited(forAll, allows("100%"))(w)
	w.requestNodes("all", pool("a"))
	admitted(w)
	status := w.budgets[0].Status
	if len(status.Working) != 256 || status.UnavailableCount != 256 {
		t.Errorf("it lists %d of %d nodes", len(status.Working), status.UnavailableCount)
	}
	golden.Message(t, status.Summary)
}

// With too many budgets, no node of a user is taken, and none of the budgets is read.
func TestTooManyNodeBudgetsHoldNodesOfUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	for i := range 65 {
		w.limitTo(fmt.Sprintf("b%d", i), forAll, over(pool("nowhere")))
	}
	requested("first", "a")(w)
	admitted(w)
	if held := cordon.Holders(w.nodes[0]); len(held) > 0 {
		t.Errorf("%v hold it", held)
	}
	w.budgets = w.budgets[1:]
	admitted(w)
	if held := cordon.Holders(w.nodes[0]); len(held) != 1 {
		t.Errorf("with %d budgets %v hold it", len(w.budgets), held)
	}
}
