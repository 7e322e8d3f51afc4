package rollout_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
)

func replacing(s *v1alpha1.NodeRolloutSpec) { s.After, s.Target = v1alpha1.AfterReplace, nil }

func toTarget(s *v1alpha1.NodeRolloutSpec) { toKernel(newKernel)(s) }

// deleteMachine does what the controller does, unless it is refused.
func (w *world) deleteMachine(one rollout.Replacement) {
	if m, _ := find(w.maintenances, one.Maintenance.Name); w.unreplaced[m.Name].Reason == "" && isDrained(m) && !slices.Contains(w.deleted, one.Node) {
		w.deleted = append(w.deleted, one.Node)
	}
}

// drained starts the rollout of a, b and c, and drains some of them.
func drained(nodes []string, change ...func(*v1alpha1.NodeRolloutSpec)) func(w *world) {
	return func(w *world) {
		w.start("patch", append([]func(*v1alpha1.NodeRolloutSpec){replacing}, change...)...)
		w.decide()
		w.now = w.now.Add(time.Minute)
		for _, node := range nodes {
			w.accept(w.of(node).Name)
			w.drain(w.of(node).Name)
		}
	}
}

// goes ends a node.
func goes(node string) func(w *world) {
	return func(w *world) {
		w.settle()
		w.deleteNode(node)
		w.settle()
		w.finishAll()
	}
}

func joins(node string, change ...func(*corev1.Node)) func(w *world) {
	return func(w *world) {
		w.now = w.now.Add(time.Minute)
		w.join(node, change...)
	}
}

func refusedMachine(reason string) func(w *world) {
	return func(w *world) {
		w.unreplaced[w.of("a").Name] = rollout.Unreplaced{Reason: reason, Message: "The API server says no."}
	}
}

func kinds(kinds ...rollout.MachineKind) func(w *world) {
	return func(w *world) { w.machineKinds = kinds }
}

func ofKarpenter(n *corev1.Node) {
	n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "claim"}}
}

func TestReplacedNodeIsDoneWhenAnotherOneIsReady(t *testing.T) {
	t.Parallel()
	a, both := []string{"a"}, []string{"a", "b"}
	tell(t, map[string]story{
		"the machine is being deleted": {drained(a), []string{"a: Replacing", "b c wait: MaxUnavailable"}},
		"the node is gone":             {then(drained(a), goes("a")), []string{"a: Replacing", "b c wait: MaxUnavailable"}},
		"another one is there":         {then(drained(a), goes("a"), joins("d")), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"one of the same name":         {then(drained(a), goes("a"), joins("a")), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"one that came before it went": {then(drained(a), joins("d"), goes("a")), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"it is not Ready":              {then(drained(a), goes("a"), joins("d", notReady)), []string{"a: Replacing", "b c wait: MaxUnavailable"}},
		"it is not selected":           {then(drained(a), goes("a"), joins("d", labelled(poolLabel, "b"))), []string{"a: Replacing", "b c wait: MaxUnavailable"}},
		"two at a time, one is there":  {then(drained(both, unavailable("2")), goes("b"), goes("a"), joins("d")), []string{"1 done", "b: Replacing", "c: Draining"}},
		"two at a time, both are":      {then(drained(both, unavailable("2")), goes("b"), goes("a"), joins("d"), joins("e")), []string{"2 done", "c: Draining"}},
		"the rollout is paused":        {then(drained(a), spec(paused)), []string{"a: Drained", "b c wait: NotRunning"}},
		"Karpenter needs no other one": {then(node("a", ofKarpenter), drained(a), goes("a")), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"in its zone": {
			then(node("a", labelled(zoneLabel, "x")), node("b", labelled(zoneLabel, "x")), node("c", labelled(zoneLabel, "y")),
				drained(a, unavailable("3"), func(s *v1alpha1.NodeRolloutSpec) { s.TopologyKey = zoneLabel }), goes("a")),
			[]string{"a: Replacing", "b: Draining", "c wait: OtherDomain"},
		},
		"a NodeBudget counts it": {
			then(limited(), drained(a, unavailable("3")), goes("a")),
			[]string{"a: Replacing", "b c wait: NodeBudget"},
		},
		"a NodeBudget has its zone": {
			then(node("a", labelled(zoneLabel, "x")), node("b", labelled(zoneLabel, "x")), node("c", labelled(zoneLabel, "y")),
				limited(allows("3"), oneZone), drained(a, unavailable("3")), goes("a")),
			[]string{"a: Replacing", "b: Draining", "c wait: NodeBudget"},
		},
		"a NodeBudget counts the other": {
			then(limited(), drained(a, unavailable("3")), goes("a"), joins("d")),
			[]string{"1 done", "b: Draining", "c wait: NodeBudget"},
		},
		"it soaks": {
			then(drained(a, func(s *v1alpha1.NodeRolloutSpec) { s.SoakSeconds = 60 }), goes("a"), joins("d")),
			[]string{"1 done", "b c wait: MaxUnavailable"},
		},
		"somebody deleted the machine before the drain": {
			then(created(replacing), settled, onA((*world).accept), func(w *world) { w.deleteNode("a") }, settled, (*world).finishAll),
			[]string{"b: Draining", "c wait: MaxUnavailable"},
		},
	})
}

func TestNodeThatIsNotReplacedFails(t *testing.T) {
	t.Parallel()
	a, hour := []string{"a"}, passes(time.Hour)
	stopped := "Degraded=True: MaxFailures"
	tell(t, map[string]story{
		"no other node comes":       {then(drained(a), goes("a"), hour), []string{"a failed: NotReplaced", "b c wait: MaxFailures", stopped}},
		"it comes late":             {then(drained(a), goes("a"), hour, settled, joins("d")), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"the node does not go":      {then(drained(a), settled, hour), []string{"a failed: NotReplaced", "b c wait: MaxFailures", stopped}},
		"the clock is wrong":        {then(drained(a), goes("a"), hour, func(w *world) { w.skewed = true }), []string{"a: Replacing", "b c wait: ClockSkewed"}},
		"it is left out":            {then(drained(a), goes("a"), hour, spec(skipping("a"))), []string{"1 skipped", "b: Draining", "c wait: MaxUnavailable"}},
		"it is left out before":     {then(drained(a), spec(skipping("a"))), []string{"1 skipped", "b: Draining", "c wait: MaxUnavailable"}},
		"it is forgiven":            {then(drained(a), goes("a"), hour, spec(forgiven("a", 1))), []string{"a failed: NotReplaced", "b c wait: MaxFailures", stopped}},
		"it has no machine":         {then(drained(a), settled, refusedMachine(v1alpha1.RolloutNodeNoMachine)), []string{"a failed: NoMachine", "b c wait: MaxFailures", stopped}},
		"the deletion is refused":   {then(drained(a), settled, refusedMachine(v1alpha1.RolloutNodeReplaceRefused)), []string{"a failed: ReplaceRefused", "b c wait: MaxFailures", stopped}},
		"a user completes it":       {then(drained(a), settled, onA((*world).completeAndFinish)), []string{"a failed: Cancelled", "b c wait: MaxFailures", stopped}},
		"and its machine goes then": {then(drained(a), settled, onA((*world).completeAndFinish), goes("a"), joins("d")), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"machines are not deleted":  {then(kinds(), created(replacing)), []string{"a b c wait: ReplaceDisabled"}},
		"the nodes name no machine": {then(node("b", ofKarpenter), kinds(rollout.Karpenter), created(replacing)), []string{"b: Draining", "a c wait: NoMachine"}},
		"another one is not better": {
			then(drained(a, toTarget), goes("a"), joins("d")),
			[]string{"1 done", "d failed: TargetNotMet", "b c wait: MaxFailures", stopped},
		},
		"one of its name is not better": {
			then(drained(a, toTarget), goes("a"), joins("a")),
			[]string{"1 done", "a failed: TargetNotMet", "b c wait: MaxFailures", stopped},
		},
		"another one is, and is left out": {
			then(drained(a, toTarget), goes("a"), joins("d"), spec(skipping("d"))),
			[]string{"1 done", "b: Draining", "c wait: MaxUnavailable"},
		},
		"another one has the target": {
			then(drained(a, toTarget), goes("a"), joins("d", hasTarget)),
			[]string{"1 done", "b: Draining", "c wait: MaxUnavailable"},
		},
	})
}

func TestMachineIsDeletedOnlyAfterItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	drained([]string{"a"})(w)
	if d := w.decide(); len(d.Rollouts[0].Replacements) > 0 || len(d.Rollouts[0].Changes) != 1 {
		t.Errorf("without a record it decides %+v", d.Rollouts[0])
	}
	if d := w.decide(); len(d.Rollouts[0].Replacements) != 1 || len(d.Rollouts[0].Changes) > 0 {
		t.Errorf("with a record it decides %+v", d.Rollouts[0])
	}
	difference.None(t, "deleted", []string{"a"}, w.deleted)
}

func TestMachinesAreNotDeletedByARolloutThatDoesNotRun(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(w *world){
		"paused":       spec(paused),
		"aborted":      spec(aborted),
		"deleted":      func(w *world) { w.deleteRollout("patch") },
		"skipped":      spec(skipping("a")),
		"given back":   spec(func(s *v1alpha1.NodeRolloutSpec) { s.After = v1alpha1.AfterGiveBack }),
		"stay drained": spec(stayDrained),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b")
			drained([]string{"a"})(w)
			happens(w)
			w.decide()
			w.decide()
			w.decide()
			difference.None(t, "deleted", []string(nil), w.deleted)
		})
	}
}

// Others are drained at the same time, and not deleted when the first shows that none follows.
func TestMachinesAreNotDeletedAfterTooManyWereNotReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	drained([]string{"a"}, unavailable("2"))(w)
	goes("a")(w)
	w.now = w.now.Add(time.Hour)
	w.settle()
	w.accept(w.of("b").Name)
	w.drain(w.of("b").Name)
	w.settle()
	difference.None(t, "deleted", []string{"a"}, w.deleted)
	r, _ := find(w.rollouts, "patch")
	sayAll(t, &r.Status)
	joins("c")(w)
	w.settle()
	difference.None(t, "deleted", []string{"a", "b"}, w.deleted)
}

// Nodes that join later are not replaced, whatever they report, so that replacements end. A complete
// rollout forgets the nodes that are gone.
func TestReplacementsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	drained([]string{"a"})(w)
	goes("a")(w)
	joins("a")(w)
	w.settle()
	r, _ := find(w.rollouts, "patch")
	difference.None(t, "status", []string{"1 done", "Complete=True: AllDone"}, shown(&r.Status))
	for _, name := range []string{"b", "c"} {
		joins(name)(w)
		w.settle()
	}
	r, _ = find(w.rollouts, "patch")
	difference.None(t, "status after more nodes", []string{"1 done", "Complete=True: AllDone"}, shown(&r.Status))
	if len(w.maintenances) > 0 {
		t.Errorf("%d NodeMaintenances remain", len(w.maintenances))
	}
	difference.None(t, "deleted", []string{"a"}, w.deleted)
}

// The rollout that is deleted while a node is replaced leaves nothing behind.
func TestDeletedRolloutForgetsReplacements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	drained([]string{"a"})(w)
	goes("a")(w)
	w.deleteRollout("patch")
	for range 3 {
		w.decide()
		w.finishAll()
	}
	if len(w.maintenances)+len(w.rollouts) > 0 {
		t.Errorf("%d NodeMaintenances and %d rollouts remain", len(w.maintenances), len(w.rollouts))
	}
}
