package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

// story is what happens, and what the rollout "patch" then shows.
type story struct {
	happens func(w *world)
	want    []string
}

// tell runs stories of three nodes a, b and c.
func tell(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b", "c")
			s.happens(w)
			w.settle()
			r, at := find(w.rollouts, "patch")
			if at < 0 {
				t.Fatal("the rollout is gone")
			}
			sayAll(t, &r.Status)
			difference.None(t, "status", s.want, shown(&r.Status))
		})
	}
}

// settle decides until nothing changes, which takes at most three decisions.
func (w *world) settle() {
	w.t.Helper()
	for range 3 {
		w.decide()
	}
	w.checkIdle()
}

// checkIdle expects a decision that writes nothing.
func (w *world) checkIdle() {
	w.t.Helper()
	d := rollout.Decide(w.snapshot())
	for i := range d.Rollouts {
		r := &d.Rollouts[i]
		if len(r.Starts)+len(r.Changes)+len(w.jobWrites(r))+len(r.Events) > 0 || r.AddFinalizer || r.RemoveFinalizer {
			w.t.Errorf("%s does not come to rest: %+v", r.Rollout.Name, r)
		}
		if !equality.Semantic.DeepEqual(r.Status, r.Rollout.Status) {
			difference.None(w.t, "status that does not come to rest", r.Rollout.Status, r.Status)
		}
	}
	for i := range d.Budgets {
		if b := &d.Budgets[i]; !equality.Semantic.DeepEqual(b.Status, b.Budget.Status) {
			difference.None(w.t, "budget that does not come to rest", b.Budget.Status, b.Status)
		}
	}
	if len(d.Orphans) > 0 {
		w.t.Errorf("%d orphans remain", len(d.Orphans))
	}
}

// shown returns what a status shows, without its messages.
func shown(s *v1alpha1.NodeRolloutStatus) (lines []string) {
	for _, one := range []struct {
		count int32
		what  string
	}{{s.DoneCount, "done"}, {s.SkippedCount, "skipped"}} {
		if one.count > 0 {
			lines = append(lines, fmt.Sprintf("%d %s", one.count, one.what))
		}
	}
	for _, n := range s.Working {
		lines = append(lines, fmt.Sprintf("%s: %s", n.Name, n.Reason))
	}
	for _, n := range s.Failed {
		lines = append(lines, fmt.Sprintf("%s failed: %s", n.Name, n.Reason))
	}
	for _, g := range s.Waiting {
		names := make([]string, len(g.Nodes))
		for i, n := range g.Nodes {
			names[i] = n.Name
		}
		lines = append(lines, fmt.Sprintf("%s wait: %s", strings.Join(names, " "), g.Reason))
	}
	conditions := slices.Clone(s.Conditions)
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	for _, c := range conditions {
		if c.Reason != v1alpha1.ReasonRolloutHealthy && c.Reason != v1alpha1.ReasonRolloutInProgress {
			lines = append(lines, fmt.Sprintf("%s=%s: %s", c.Type, c.Status, c.Reason))
		}
	}
	return lines
}

func sayAll(t *testing.T, s *v1alpha1.NodeRolloutStatus) {
	t.Helper()
	golden.Message(t, "summary", s.Summary)
	for _, n := range slices.Concat(s.Working, s.Failed) {
		golden.Message(t, n.Reason, n.Message)
	}
	for _, g := range s.Waiting {
		golden.Message(t, g.Reason, g.Message)
	}
	for _, c := range s.Conditions {
		golden.Message(t, c.Reason, c.Message)
	}
}

func TestNodeStateIsThatOfItsNodeMaintenance(t *testing.T) {
	t.Parallel()
	begins := begun()
	tell(t, map[string]story{
		"not created yet": {
			started(),
			[]string{"a: Draining", "b c wait: MaxUnavailable"},
		},
		"not drained": {begins, []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"blocked": {then(begins, onA(func(w *world, name string) {
			w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) {
				setCondition(w, m, v1alpha1.ConditionBlocked, true, "DisruptionBudget")
			})
		})), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"drained":                       {then(begins, onA((*world).drain)), []string{"a: Drained", "b c wait: MaxUnavailable"}},
		"drained without target":        {then(begun(withoutTarget), onA((*world).drain)), []string{"a: Drained", "b c wait: MaxUnavailable"}},
		"drained and stays so":          {then(begun(stayDrained), onA((*world).drain)), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"stayed drained and given back": {then(begun(stayDrained), onA((*world).drain), settled, onA((*world).completeAndFinish)), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"drained in the time for work": {
			then(begins, onA((*world).drain), passes(time.Hour-time.Second)),
			[]string{"a: Drained", "b c wait: MaxUnavailable"},
		},
		"drained for too long": {
			then(begins, onA((*world).drain), passes(time.Hour)),
			[]string{"a failed: WorkTimedOut", "b c wait: MaxFailures", "Degraded=True: MaxFailures"},
		},
		"drained without a time for work": {
			then(begun(func(s *v1alpha1.NodeRolloutSpec) { s.Failure.WorkTimeoutSeconds = new(int32(0)) }), onA((*world).drain), passes(100*time.Hour)),
			[]string{"a: Drained", "b c wait: MaxUnavailable"},
		},
		"drained for too long by a clock that is not trusted": {
			then(begins, onA((*world).drain), passes(time.Hour), func(w *world) { w.skewed = true }),
			[]string{"a: Drained", "b c wait: ClockSkewed"},
		},
		"drained for too long and stays so": {then(begun(stayDrained), onA((*world).drain), passes(time.Hour)), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"being given back": {
			then(begins, onA((*world).drain), onA(func(w *world, name string) { w.comeBack(name, newKernel) })),
			[]string{"a: Returning", "b c wait: MaxUnavailable"},
		},
		"returned":                            {then(begins, func(w *world) { w.succeed("a") }), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"late return heals a failure":         {then(begins, onA((*world).drain), passes(2*time.Hour), settled, onA((*world).comeBackAndFinish)), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"succeeded without target":            {then(begun(withoutTarget), onA((*world).drain), onA((*world).completeAndFinish)), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"succeeded and target not met":        {then(begins, onA((*world).drain), onA((*world).completeAndFinish)), []string{"a failed: TargetNotMet", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"completed before it was drained":     {then(begins, onA((*world).completeAndFinish)), []string{"a failed: Cancelled", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"completed before it was seen":        {then(started(withoutTarget), onA((*world).completeAndFinish)), []string{"a failed: Cancelled", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"deleted before it was drained":       {then(begins, onA((*world).deleteAndFinish)), []string{"a failed: Deleted", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"deleted before it was seen":          {then(started(), onA((*world).deleteMaintenance)), []string{"a failed: Deleted", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"deleted while it was drained":        {then(begun(withoutTarget), onA((*world).drain), onA((*world).deleteAndFinish)), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"a deadline waits for the next":       {then(begins, func(w *world) { w.timeOut("a") }), []string{"b: Draining", "c a wait: MaxUnavailable"}},
		"a deadline without a retry":          {then(begun(noRetry), func(w *world) { w.timeOut("a") }), []string{"a failed: DrainTimedOut", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"one failure of two that are allowed": {then(begun(twoMayFail), onA((*world).completeAndFinish)), []string{"b: Draining", "a failed: Cancelled", "c wait: MaxUnavailable", "Degraded=True: NodesFailed"}},
	})
}

func TestFailureIsForgivenOrSkipped(t *testing.T) {
	t.Parallel()
	cancelled := then(begun(), onA((*world).completeAndFinish), settled)
	timedOut := then(begun(), onA((*world).drain), passes(2*time.Hour), settled)
	tell(t, map[string]story{
		"forgiven":                              {then(cancelled, spec(forgiven("a", 1))), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"forgiven and failed again":             {then(cancelled, spec(forgiven("a", 1)), settled, onA((*world).accept), onA((*world).completeAndFinish)), []string{"a failed: Cancelled", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"skipped":                               {then(cancelled, spec(skipping("a"))), []string{"1 skipped", "b: Draining", "c wait: MaxUnavailable"}},
		"skipped while it drains":               {then(begun(), spec(skipping("a"))), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"one that waits is skipped":             {then(begun(), spec(skipping("b"))), []string{"1 skipped", "a: Draining", "c wait: MaxUnavailable"}},
		"a drained one is forgiven":             {then(timedOut, spec(forgiven("a", 1))), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"more failures are allowed":             {then(cancelled, spec(twoMayFail)), []string{"b: Draining", "a failed: Cancelled", "c wait: MaxUnavailable", "Degraded=True: NodesFailed"}},
		"another target":                        {then(cancelled, spec(toKernel("6.12.10"))), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"the target is met without the rollout": {then(cancelled, node("a", func(n *corev1.Node) { n.Status.NodeInfo.KernelVersion = newKernel })), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
	})
}

func window(from, to string) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) { s.Windows = []v1alpha1.MaintenanceWindow{{From: from, To: to}} }
}

func TestStartOfEveryNodeIsRefused(t *testing.T) {
	t.Parallel()
	tell(t, map[string]story{
		"invalid spec": {created(func(s *v1alpha1.NodeRolloutSpec) {
			s.Windows = []v1alpha1.MaintenanceWindow{{From: "22:00", To: "04:00", TimeZone: "Mars"}}
		}), []string{"Complete=False: InvalidSpec"}},
		"no selector":          {created(func(s *v1alpha1.NodeRolloutSpec) { s.NodeSelector = nil }), []string{"Complete=False: InvalidSpec"}},
		"no node":              {created(func(s *v1alpha1.NodeRolloutSpec) { s.NodeSelector = pool("b") }), []string{"Complete=False: NoNodes"}},
		"paused":               {created(paused), []string{"a b c wait: NotRunning"}},
		"paused in the middle": {then(begun(), spec(paused)), []string{"a: Draining", "b c wait: NotRunning"}},
		"aborted":              {created(aborted), []string{"a b c wait: NotRunning", "Complete=True: Aborted"}},
		"clock not trusted":    {then(created(), func(w *world) { w.skewed = true }), []string{"a b c wait: ClockSkewed"}},
		"blackout": {created(func(s *v1alpha1.NodeRolloutSpec) {
			now := newWorld(t).now
			s.Blackouts = []v1alpha1.Blackout{{StartTime: metav1.NewTime(now), EndTime: metav1.NewTime(now.Add(time.Hour)), Reason: "freeze"}}
		}), []string{"a b c wait: Blackout"}},
		"blackout begins soon": {created(func(s *v1alpha1.NodeRolloutSpec) {
			now := newWorld(t).now
			s.Blackouts = []v1alpha1.Blackout{{StartTime: metav1.NewTime(now.Add(29 * time.Minute)), EndTime: metav1.NewTime(now.Add(time.Hour))}}
		}), []string{"a b c wait: Window"}},
		"window closed":            {created(window("22:00", "04:00")), []string{"a b c wait: Window"}},
		"window open":              {created(window("11:00", "14:00")), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"too little time is left":  {created(window("10:00", "12:29")), []string{"a b c wait: Window"}},
		"just enough time is left": {created(window("10:00", "12:30")), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"half of a short window":   {created(window("11:45", "12:15")), []string{"a: Draining", "b c wait: MaxUnavailable"}},
	})
}

func TestStartBesideUnavailableNodesIsRefused(t *testing.T) {
	t.Parallel()
	zones := then(node("a", labelled(zoneLabel, "1")), node("b", labelled(zoneLabel, "1")), node("c", labelled(zoneLabel, "2")))
	byZone := func(s *v1alpha1.NodeRolloutSpec) { s.TopologyKey = zoneLabel }
	controlPlanes := func(policy v1alpha1.ControlPlanePolicy) func(*v1alpha1.NodeRolloutSpec) {
		return func(s *v1alpha1.NodeRolloutSpec) { s.ControlPlane = policy }
	}
	tell(t, map[string]story{
		"another NodeMaintenance":    {then(func(w *world) { w.maintain("mine", "a") }, created(unavailable("2"))), []string{"b: Draining", "c wait: MaxUnavailable", "a wait: OtherMaintenance"}},
		"not Ready":                  {then(node("a", notReady), created(unavailable("2"))), []string{"b: Draining", "c wait: MaxUnavailable", "a wait: NotReady"}},
		"not Ready fills the budget": {then(node("a", notReady), created()), []string{"b c wait: MaxUnavailable", "a wait: NotReady"}},
		"cordoned fills the budget":  {then(node("b", unschedulable), created()), []string{"b: Draining", "a c wait: MaxUnavailable"}},
		"two of three":               {created(unavailable("2")), []string{"a: Draining", "b: Draining", "c wait: MaxUnavailable"}},
		"two thirds of three":        {created(unavailable("67%")), []string{"a: Draining", "b: Draining", "c wait: MaxUnavailable"}},
		"a percentage is at least 1": {created(unavailable("1%")), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"many are unavailable": {func(w *world) {
			for _, name := range []string{"d", "e", "f", "g", "h"} {
				w.join(name, unschedulable, notReady)
			}
			w.start("patch", unavailable("4"))
		}, []string{"d e f g h wait: NotReady", "a b c wait: MaxUnavailable"}},
		"one of many is unavailable itself": {func(w *world) {
			for _, name := range []string{"d", "e", "f", "g"} {
				w.join(name, unschedulable)
			}
			w.start("patch", unavailable("1"))
		}, []string{"d e f g a wait: MaxUnavailable"}},
		"domains":                     {then(zones, created(byZone, unavailable("3"))), []string{"a: Draining", "b: Draining", "c wait: OtherDomain"}},
		"unavailable in other domain": {then(zones, node("c", notReady), created(byZone, unavailable("3"))), []string{"a b wait: OtherDomain", "c wait: NotReady"}},
		"control plane excluded":      {then(node("a", controlPlane), created()), []string{"b: Draining", "c wait: MaxUnavailable"}},
		"control plane first":         {then(node("c", controlPlane), created(controlPlanes("First"))), []string{"c: Draining", "a b wait: ControlPlane"}},
		"control plane last":          {then(node("a", controlPlane), created(controlPlanes("Last"))), []string{"b: Draining", "c wait: MaxUnavailable", "a wait: OtherNodes"}},
		"control plane one at a time": {then(node("a", controlPlane), node("b", controlPlane), created(controlPlanes("First"), unavailable("3"))), []string{"a: Draining", "b c wait: ControlPlane"}},
		"control plane outside is unavailable": {then(node("a", controlPlane), func(w *world) {
			w.join("d", controlPlane, labelled(poolLabel, "b"), notReady)
		}, created(controlPlanes("First"), unavailable("3"))), []string{"a b c wait: ControlPlane"}},
	})
}

func TestStartBeforeCanaryIsRefused(t *testing.T) {
	t.Parallel()
	canary := func(soak int32, approved *bool) func(*v1alpha1.NodeRolloutSpec) {
		return func(s *v1alpha1.NodeRolloutSpec) {
			s.Canary = &v1alpha1.RolloutCanary{NodeCount: 1, SoakSeconds: soak, Approved: approved}
		}
	}
	aDone := func(w *world) { w.succeed("a") }
	tell(t, map[string]story{
		"canary":                          {created(canary(60, nil), unavailable("2")), []string{"a: Draining", "b c wait: Canary"}},
		"canary soaks":                    {then(begun(canary(60, nil), unavailable("2")), aDone, passes(59*time.Second)), []string{"1 done", "b c wait: Canary"}},
		"canary has soaked":               {then(begun(canary(60, nil), unavailable("2")), aDone, passes(60*time.Second)), []string{"1 done", "b: Draining", "c: Draining"}},
		"canary is not approved":          {then(begun(canary(0, new(false))), aDone), []string{"1 done", "b c wait: Approval"}},
		"canary is approved":              {then(begun(canary(0, new(true))), aDone), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
		"canary failed and others may be": {then(begun(canary(0, nil), twoMayFail), onA((*world).completeAndFinish)), []string{"b: Draining", "a failed: Cancelled", "c wait: Canary", "Degraded=True: NodesFailed"}},
		"soaking":                         {then(begun(func(s *v1alpha1.NodeRolloutSpec) { s.SoakSeconds = 60 }), aDone, passes(59*time.Second)), []string{"1 done", "b c wait: MaxUnavailable"}},
		"soaked":                          {then(begun(func(s *v1alpha1.NodeRolloutSpec) { s.SoakSeconds = 60 }), aDone, passes(60*time.Second)), []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}},
	})
}

func TestStartThatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	tell(t, map[string]story{
		"an older rollout has it": {func(w *world) {
			w.start("older")
			w.now = w.now.Add(time.Second)
			w.start("patch", unavailable("2"))
		}, []string{"b: Draining", "c wait: MaxUnavailable", "a wait: OtherMaintenance"}},
		"creation refused": {func(w *world) {
			w.start("patch")
			d := rollout.Decide(w.snapshot())
			w.refused[d.Rollouts[0].Starts[0].Name] = "quota exceeded"
		}, []string{"b: Draining", "c wait: MaxUnavailable", "a wait: WriteRefused"}},
		"creation unknown": {func(w *world) {
			w.start("patch", unavailable("2"))
			d := rollout.Decide(w.snapshot())
			w.apply(d, stopAfter(2))
			w.unknown[d.Rollouts[0].Starts[0].Name] = true
		}, []string{"a: Starting", "b: Draining", "c wait: MaxUnavailable"}},
	})
}

func TestOrderOfStarts(t *testing.T) {
	t.Parallel()
	tell(t, map[string]story{
		"by name":                  {begun(), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"cordoned nodes first":     {then(node("c", unschedulable), func(w *world) { w.start("patch") }), []string{"c: Draining", "a b wait: MaxUnavailable"}},
		"retries last":             {then(begun(), func(w *world) { w.timeOut("a") }, settled, func(w *world) { w.succeed("b") }), []string{"1 done", "c: Draining", "a wait: MaxUnavailable"}},
		"a retry after all others": {then(begun(), func(w *world) { w.timeOut("a") }, settled, func(w *world) { w.succeed("b") }, settled, func(w *world) { w.succeed("c") }), []string{"2 done", "a: Draining"}},
		"the second retry fails": {
			then(begun(), func(w *world) { w.timeOut("a") }, settled, func(w *world) { w.succeed("b") }, settled, func(w *world) { w.succeed("c") }, settled, func(w *world) { w.timeOut("a") }),
			[]string{"2 done", "a failed: DrainTimedOut", "Complete=True: NodesFailed", "Degraded=True: MaxFailures"},
		},
	})
}

func TestRolloutEnds(t *testing.T) {
	t.Parallel()
	allDone := then(begun(), func(w *world) { w.succeed("a") }, settled, func(w *world) { w.succeed("b") }, settled, func(w *world) { w.succeed("c") }, settled)
	tell(t, map[string]story{
		"complete":                  {allDone, []string{"3 done", "Complete=True: AllDone"}},
		"complete and a node joins": {then(allDone, func(w *world) { w.join("d") }), []string{"3 done", "Complete=True: AllDone"}},
		"complete, a node joins, the spec changes": {then(allDone, func(w *world) { w.join("d") }, spec(unavailable("2"))), []string{"3 done", "d: Draining"}},
		"complete and a node is replaced":          {then(allDone, recreated), []string{"3 done", "Complete=True: AllDone"}},
		"complete with a failed node that comes back": {
			then(begun(), onA((*world).drain), passes(2*time.Hour), settled, spec(skipping("b"), skipping("c")), settled, onA((*world).comeBackAndFinish)),
			[]string{"1 done", "2 skipped", "Complete=True: AllDone"},
		},
		"nodes need nothing": {then(node("a", hasTarget), node("b", hasTarget), node("c", hasTarget), func(w *world) { w.start("patch") }), []string{"3 done", "Complete=True: AllDone"}},
		"nodes report the target and must boot": {then(node("a", hasTarget), func(w *world) {
			w.start("patch", func(s *v1alpha1.NodeRolloutSpec) { s.Target.NewBoot = true })
		}), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"all are skipped": {func(w *world) { w.start("patch", skipping("a"), skipping("b"), skipping("c")) }, []string{"3 skipped", "Complete=True: AllDone"}},
		"a failed node stays drained and returns after the end": {
			then(begun(), onA((*world).drain), passes(2*time.Hour), settled, spec(skipping("b"), skipping("c")), settled, onA(func(w *world, name string) { w.comeBack(name, newKernel) })),
			[]string{"2 skipped", "a: Returning", "Complete=True: NodesFailed"},
		},
		"aborted while a node drains":          {then(begun(), spec(aborted)), []string{"a: Returning", "b c wait: NotRunning"}},
		"aborted and the node is given back":   {then(begun(), spec(aborted), settled, onA((*world).finish)), []string{"a b c wait: NotRunning", "Complete=True: Aborted"}},
		"aborted while a node is drained":      {then(begun(), onA((*world).drain), spec(aborted)), []string{"a: Drained", "b c wait: NotRunning", "Complete=True: Aborted"}},
		"aborted and the drained node returns": {then(begun(), onA((*world).drain), spec(aborted), settled, onA((*world).comeBackAndFinish)), []string{"1 done", "b c wait: NotRunning", "Complete=True: Aborted"}},
		"deleted while a node drains":          {then(begun(), func(w *world) { w.deleteRollout("patch") }), []string{"a: Returning", "b c wait: NotRunning"}},
	})
}

func TestRolloutFollowsChanges(t *testing.T) {
	t.Parallel()
	tell(t, map[string]story{
		"a node leaves the selection while it drains": {then(begun(), node("a", labelled(poolLabel, "b"))), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"a node leaves the selection and is done":     {then(begun(), node("a", labelled(poolLabel, "b")), func(w *world) { w.succeedAccepted("a") }), []string{"b: Draining", "c wait: MaxUnavailable"}},
		"a node joins":                        {then(begun(), func(w *world) { w.join("d") }), []string{"a: Draining", "b c d wait: MaxUnavailable"}},
		"a node is deleted while it drains":   {then(begun(), func(w *world) { w.deleteNode("a") }, settled, func(w *world) { w.finishAll() }), []string{"b: Draining", "c wait: MaxUnavailable"}},
		"a node exists again under its name":  {then(begun(), recreated, settled, func(w *world) { w.finishAll() }), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"another target while a node drains":  {then(begun(), spec(toKernel("6.12.10"))), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"another target after a node is done": {then(begun(), func(w *world) { w.succeed("a") }, settled, spec(toKernel("6.12.10"))), []string{"b: Draining", "a c wait: MaxUnavailable"}},
		"invalid in the middle":               {then(begun(), spec(func(s *v1alpha1.NodeRolloutSpec) { s.NodeSelector = nil })), []string{"a: Draining", "Complete=False: InvalidSpec"}},
	})
}
