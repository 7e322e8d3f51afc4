package view_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/difference"
)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

func kernel(nodes ...v1alpha1.NodeMaintenanceNodeStatus) *v1alpha1.NodeMaintenance {
	return named("kernel", nodes...)
}

func named(name string, nodes ...v1alpha1.NodeMaintenanceNodeStatus) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: *ago(time.Hour), Finalizers: []string{v1alpha1.MaintenanceCompletionFinalizer}},
		Spec:       v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, Reason: "New kernel"},
		Status: v1alpha1.NodeMaintenanceStatus{
			NodeCount: int32(len(nodes)), Summary: "what the controller says", NodeStatuses: nodes,
			StageStatuses: []v1alpha1.StageStatus{{Name: v1alpha1.StageDrain, StartTimestamp: ago(10 * time.Minute)}},
		},
	}
}

func node(name string, evacuating int32, blockers ...v1alpha1.Blocker) v1alpha1.NodeMaintenanceNodeStatus {
	said := v1alpha1.NodeMaintenanceNodeStatus{
		NodeRef: v1alpha1.NodeReference{Name: name}, PodsEvacuating: evacuating, State: v1alpha1.NodeStateDraining, DrainMessage: "Evacuating", Blockers: blockers,
	}
	if evacuating == 0 {
		said.State, said.DrainMessage = v1alpha1.NodeStateDrained, "Drained."
	}
	return said
}

func waiting(name string, pods int32, awaited ...string) v1alpha1.NodeMaintenanceNodeStatus {
	said := node(name, 0)
	said.PodsPendingEvacuation, said.State, said.DrainMessage = pods, v1alpha1.NodeStateWaitingForNodes, "Waiting for "+strings.Join(awaited, ", ")+"."
	for _, other := range awaited {
		said.AwaitedNodes = append(said.AwaitedNodes, v1alpha1.NodeReference{Name: other})
	}
	return said
}

func back(name string) v1alpha1.NodeMaintenanceNodeStatus {
	said := node(name, 0)
	said.State, said.DrainMessage = v1alpha1.NodeStateReturned, "Back since noon."
	return said
}

func before(nodes ...v1alpha1.NodeMaintenanceNodeStatus) *v1alpha1.NodeMaintenance {
	for i := range nodes {
		nodes[i].State, nodes[i].AwaitedNodes = "", nil
	}
	return kernel(nodes...)
}

func exhausted(name string, pods int32) v1alpha1.Blocker {
	return held1(v1alpha1.BlockerPDBExhausted, name, pods)
}

func held1(kind v1alpha1.BlockerType, name string, pods int32) v1alpha1.Blocker {
	return v1alpha1.Blocker{
		Type: kind, PodCount: pods, SinceTime: ago(time.Minute), Message: name + " is used up.", Suggestion: "Wait for " + name + ".",
		Object: v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: name},
	}
}

func with(m *v1alpha1.NodeMaintenance, conditionType, reason string) *v1alpha1.NodeMaintenance {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason})
	return m
}

func staged(m *v1alpha1.NodeMaintenance, stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	m.Spec.Stage = stage
	m.Status.StageStatuses = append(m.Status.StageStatuses, v1alpha1.StageStatus{Name: stage, StartTimestamp: ago(time.Minute)})
	return m
}

func over(m *v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	m.Finalizers = nil
	m.Status.NodeStatuses = nil
	return staged(m, v1alpha1.StageComplete)
}

func status(m *v1alpha1.NodeMaintenance) view.Status {
	return view.One(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{m}})
}

func inShort(s view.Status) string {
	return fmt.Sprintf("%s %s: %d/%d nodes, %d pods, %d blocked, %d unlisted; %s", s.Stage, s.State, s.DrainedCount, s.NodeCount, s.PodsLeft, s.PodsBlocked, s.UnlistedCount, s.Estimate.Text)
}

func TestHowFarAMaintenanceIs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		object *v1alpha1.NodeMaintenance
		want   string
	}{
		"planned":                 {staged(kernel(), v1alpha1.StageIdle), "Idle planned: 0/0 nodes, 0 pods, 0 blocked, 0 unlisted; "},
		"cordoned":                {staged(kernel(v1alpha1.NodeMaintenanceNodeStatus{NodeRef: v1alpha1.NodeReference{Name: "node-1"}}), v1alpha1.StageCordon), "Cordon cordoning: 0/1 nodes, 0 pods, 0 blocked, 0 unlisted; "},
		"at work":                 {kernel(node("node-1", 3), node("node-2", 0)), "Drain draining: 1/2 nodes, 3 pods, 0 blocked, 0 unlisted; unknown yet"},
		"held up":                 {with(kernel(node("node-1", 3, exhausted("web", 2))), "Blocked", "PDBExhausted"), "Drain blocked: 0/1 nodes, 3 pods, 2 blocked, 0 unlisted; unknown yet"},
		"held up in all":          {with(kernel(node("node-1", 2, exhausted("web", 2))), "Blocked", "PDBExhausted"), "Drain blocked: 0/1 nodes, 2 pods, 2 blocked, 0 unlisted; unknown: 2 pods are blocked"},
		"an evacuator moves pods": {kernel(node("node-1", 3, held1(v1alpha1.BlockerEvacuatorRunning, "mover", 3))), "Drain draining: 0/1 nodes, 3 pods, 0 blocked, 0 unlisted; unknown yet"},
		"drained":                 {with(kernel(node("node-1", 0)), "Drained", "Drained"), "Drain drained: 1/1 nodes, 0 pods, 0 blocked, 0 unlisted; "},
		"back":                    {with(kernel(back("node-1")), "Drained", "Drained"), "Drain drained: 1/1 nodes, 0 pods, 0 blocked, 0 unlisted; "},
		"one of two is back":      {kernel(node("node-1", 3), back("node-2")), "Drain draining: 1/2 nodes, 3 pods, 0 blocked, 0 unlisted; unknown yet"},
		"without states":          {before(node("node-1", 3), node("node-2", 0)), "Drain draining: 0/2 nodes, 3 pods, 0 blocked, 0 unlisted; unknown yet"},
		"being completed":         {staged(kernel(), v1alpha1.StageComplete), "Complete completing: 0/0 nodes, 0 pods, 0 blocked, 0 unlisted; "},
		"complete":                {over(kernel()), "Complete complete: 0/0 nodes, 0 pods, 0 blocked, 0 unlisted; "},
		"invalid":                 {with(kernel(), "Blocked", "InvalidSpec"), "Drain invalid: 0/0 nodes, 0 pods, 0 blocked, 0 unlisted; "},
		"drained ones are left out": {
			func() *v1alpha1.NodeMaintenance {
				m := kernel(node("node-1", 4), node("node-2", 0), node("node-3", 0))
				m.Status.NodeCount = 5000
				return m
			}(),
			"Drain draining: 4999/5000 nodes, 4 pods, 0 blocked, 0 unlisted; unknown yet",
		},
		"others are left out too": {
			func() *v1alpha1.NodeMaintenance {
				m := kernel(node("node-1", 4), node("node-2", 1), node("node-3", 1))
				m.Status.NodeCount = 5000
				return m
			}(),
			"Drain draining: 0/5000 nodes, 6 pods, 0 blocked, 4997 unlisted; unknown yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := inShort(status(test.object)); got != test.want {
				t.Errorf("it is %q,\nwant  %q", got, test.want)
			}
		})
	}
}

func TestLargestBlockerComesFirst(t *testing.T) {
	t.Parallel()
	cordon := v1alpha1.Blocker{Type: v1alpha1.BlockerCordonRefused, Object: v1alpha1.BlockerObject{Kind: "Node", Name: "node-2"}}
	got := status(kernel(
		node("node-1", 9, exhausted("web", 5), held1(v1alpha1.BlockerEvacuatorRunning, "mover", 3), held1(v1alpha1.BlockerPDBUnsatisfiable, "db", 1)),
		node("node-2", 2, exhausted("web", 2), cordon),
	))
	var told []string
	for _, b := range got.Blockers {
		told = append(told, fmt.Sprintf("%s %s: %d pods on %d nodes", b.Type, b.Object, b.PodCount, b.NodeCount))
	}
	want := []string{
		"CordonRefused Node/node-2: 0 pods on 1 nodes", "PDBUnsatisfiable PodDisruptionBudget/shop/db: 1 pods on 1 nodes",
		"PDBExhausted PodDisruptionBudget/shop/web: 7 pods on 2 nodes", "EvacuatorRunning PodDisruptionBudget/shop/mover: 3 pods on 1 nodes",
	}
	difference.None(t, "who blocks", want, told)
	if got.Nodes[0].Name != "node-1" || got.Nodes[0].PodsBlocked != 6 || got.Nodes[0].State != view.StateBlocked {
		t.Errorf("the node in most trouble is %+v", got.Nodes[0])
	}
}

func TestHowLongItTakes(t *testing.T) {
	t.Parallel()
	drainedAt := func(d time.Duration) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: v1alpha1.NodeDrained, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonNodeMaintenance, LastTransitionTime: *ago(d),
		}}}}
	}
	four := func(blockers ...v1alpha1.Blocker) *v1alpha1.NodeMaintenance {
		return kernel(node("node-1", 0), node("node-2", 0), node("node-3", 8, blockers...), node("node-4", 4))
	}
	twice := map[string]*corev1.Node{"node-1": drainedAt(5 * time.Minute), "node-2": drainedAt(time.Minute)}
	seen := func(gone int, d time.Duration) map[string]view.Progress {
		return map[string]view.Progress{"kernel": {Since: noon.Add(-d), Gone: gone}}
	}
	for name, test := range map[string]struct {
		object *v1alpha1.NodeMaintenance
		nodes  map[string]*corev1.Node
		seen   map[string]view.Progress
		want   string
	}{
		"nothing was seen":               {four(), nil, nil, "unknown yet"},
		"two pods have gone":             {four(), nil, seen(2, time.Minute), "unknown yet"},
		"pods have gone just now":        {four(), nil, seen(6, time.Second), "unknown yet"},
		"six pods have gone in a minute": {four(), nil, seen(6, time.Minute), "about 2 min"},
		"without those that are blocked": {four(exhausted("web", 2)), nil, seen(6, time.Minute), "about 2 min, without 2 blocked pods"},
		"all of a node are blocked":      {four(exhausted("web", 8)), twice, nil, "about 5 min, without 8 blocked pods"},
		"two nodes in ten minutes":       {four(), twice, nil, "about 10 min"},
		"pods tell more than nodes":      {four(), twice, seen(6, 12*time.Second), "about 24 s"},
		"a node was drained before":      {four(), map[string]*corev1.Node{"node-1": drainedAt(20 * time.Minute), "node-2": drainedAt(time.Minute)}, nil, "unknown yet"},
		"all are blocked":                {kernel(node("node-1", 2, exhausted("web", 2))), twice, seen(6, time.Minute), "unknown: 2 pods are blocked"},
		"a clock that goes back":         {four(), nil, seen(6, -time.Minute), "unknown yet"},
		"nothing is left":                {kernel(node("node-1", 0)), twice, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := view.One(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{test.object}, Nodes: test.nodes, Seen: test.seen}).Estimate
			if got.Text != test.want || got.Known != strings.HasPrefix(test.want, "about") || got.Known != (got.FinishTime != nil) {
				t.Errorf("it takes %q (%+v), want %q", got.Text, got, test.want)
			}
		})
	}
}

func lockedBy(name, maintenance, node string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{
		v1alpha1.LockAnnotation: budget.Lock{
			Holder: budget.Holder(maintenance, node), Reason: "New kernel", AcquiredAt: *ago(time.Minute), ExpiresAt: *ago(-10 * time.Minute),
		}.Write(),
	}}}
}

func TestMutualWaitersAreNamed(t *testing.T) {
	t.Parallel()
	locked := func(name string) v1alpha1.Blocker { return held1(v1alpha1.BlockerPDBLocked, name, 1) }
	for name, test := range map[string]struct {
		objects []*v1alpha1.NodeMaintenance
		budgets []*policyv1.PodDisruptionBudget
		want    []string
	}{
		"two wait for each other's locks": {
			[]*v1alpha1.NodeMaintenance{named("left", node("node-1", 1, locked("web"))), named("right", node("node-2", 1, locked("db")))},
			[]*policyv1.PodDisruptionBudget{lockedBy("web", "right", "node-2"), lockedBy("db", "left", "node-1")},
			[]string{"None of these can proceed: node/node-1 waits for pdb/shop/web; pdb/shop/web is locked by node/node-2; node/node-2 waits for pdb/shop/db; pdb/shop/db is locked by node/node-1."},
		},
		"one has locked its own way": {
			[]*v1alpha1.NodeMaintenance{kernel(node("node-1", 1, locked("web")))},
			[]*policyv1.PodDisruptionBudget{lockedBy("web", "kernel", "node-1")},
			[]string{"None of these can proceed: node/node-1 waits for pdb/shop/web; pdb/shop/web is locked by node/node-1."},
		},
		"a dead node is in the way of its own pods, and waits for nobody": {
			[]*v1alpha1.NodeMaintenance{kernel(node("node-1", 1, v1alpha1.Blocker{
				Type: v1alpha1.BlockerNodeUnreachable, Object: v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Node", Name: "node-1"}, PodCount: 1,
			}))},
			nil,
			nil,
		},
		"one is over": {
			[]*v1alpha1.NodeMaintenance{named("left", node("node-1", 1, locked("web"))), over(named("right", node("node-2", 1, locked("db"))))},
			[]*policyv1.PodDisruptionBudget{lockedBy("web", "right", "node-2"), lockedBy("db", "left", "node-1")},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := view.Of(&view.Snapshot{Now: noon, Maintenances: test.objects, Budgets: test.budgets})
			difference.None(t, "circles", test.want, got.Circles)
			for i := range got.Items {
				difference.None(t, fmt.Sprintf("circles of %s", got.Items[i].Name), test.want, got.Items[i].Circles)
			}
		})
	}
}

// The circles of random graphs are those that a search from each object finds.
func TestCirclesAreThoseOfASearch(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(7)
		var nodes []v1alpha1.NodeMaintenanceNodeStatus
		edges := map[string][]string{}
		for i := range n {
			name, to := fmt.Sprintf("n%d", i), fmt.Sprintf("n%d", r.IntN(n))
			if r.IntN(4) == 0 {
				nodes = append(nodes, node(name, 1))
				continue
			}
			nodes = append(nodes, waiting(name, 1, to))
			edges[name] = append(edges[name], to)
		}
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		got := strings.Join(status(kernel(nodes...)).Circles, "\n")
		for i := range n {
			name := fmt.Sprintf("n%d", i)
			if in := strings.Contains(got, "node/"+name+" waits"); in != returns(edges, name) {
				t.Fatalf("seed %d: %s is in a circle: %t, want %t, of %v\n%s", seed, name, in, returns(edges, name), edges, got)
			}
		}
	}
}

func returns(edges map[string][]string, from string) bool {
	seen := map[string]bool{}
	for next := edges[from]; len(next) > 0; next = next[1:] {
		if next[0] == from {
			return true
		}
		if !seen[next[0]] {
			seen[next[0]] = true
			next = append(next, edges[next[0]]...)
		}
	}
	return false
}

func TestLocksAndTheirOwners(t *testing.T) {
	t.Parallel()
	record := &v1alpha1.DrainRecord{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: v1alpha1.DrainRecordSpec{MaintenanceRef: v1alpha1.MaintenanceReference{Name: "kernel"}},
		Status: v1alpha1.DrainRecordStatus{Locks: []v1alpha1.RecordedLock{{
			BudgetReference: v1alpha1.BudgetReference{Namespace: "shop", Name: "db"}, AcquiredTime: *ago(time.Minute), ConfirmedTime: ago(0),
		}}},
	}
	got := view.One(&view.Snapshot{
		Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{kernel(node("node-1", 1, held1(v1alpha1.BlockerPDBLocked, "web", 1)))},
		Records: map[string]*v1alpha1.DrainRecord{"node-1": record},
		Budgets: []*policyv1.PodDisruptionBudget{lockedBy("web", "other", "node-9"), lockedBy("db", "kernel", "node-1"), lockedBy("nobody", "x", "y")},
	}).Locks
	want := []view.Lock{
		{Budget: "shop/db", Holder: "node node-1", Node: "node-1", Maintenance: "kernel", AcquiredTime: ago(time.Minute), EndTime: ago(-10 * time.Minute), Confirmed: true},
		{Budget: "shop/web", Holder: "node node-9", Node: "node-9", Maintenance: "other", AcquiredTime: ago(time.Minute), EndTime: ago(-10 * time.Minute), Reason: "New kernel"},
	}
	difference.None(t, "locks", want, got)
}
