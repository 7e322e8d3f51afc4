package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestStartCreatesNodeMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	w.start("patch", func(s *v1alpha1.NodeRolloutSpec) {
		s.Maintenance = v1alpha1.RolloutMaintenance{
			Reason: "kernel", DrainDepth: v1alpha1.PodTypeDaemonSet, InPlace: &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60},
			DrainPlan: []v1alpha1.DrainPlanEntry{{PodPriority: 7}},
		}
	})
	edit(w, w.rollouts, "patch", func(r *v1alpha1.NodeRollout) { r.Annotations[v1alpha1.RequestedByAnnotation] = "jane" })
	w.decide()
	m := w.of("a")
	want := v1alpha1.NodeMaintenanceSpec{
		NodeSelector: named("a"), Stage: v1alpha1.StageDrain, Reason: "kernel", DrainDepth: v1alpha1.PodTypeDaemonSet,
		InPlace: &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}, DrainPlan: []v1alpha1.DrainPlanEntry{{PodPriority: 7}},
		CompleteWhen: &v1alpha1.CompleteWhen{KernelVersion: newKernel}, Deadline: m.Spec.Deadline,
	}
	difference.None(t, "spec", want, m.Spec)
	difference.None(t, "finalizers", []string{v1alpha1.RolloutFinalizer}, m.Finalizers)
	if m.Labels[v1alpha1.RolloutLabel] != "patch" || m.Annotations[v1alpha1.RequestedByAnnotation] != "jane" {
		t.Errorf("labels %v, annotations %v", m.Labels, m.Annotations)
	}
	r, _ := find(w.rollouts, "patch")
	difference.None(t, "finalizers of the rollout", []string{v1alpha1.RolloutFinalizer}, r.Finalizers)
	if r.Status.Working[0].NodeMaintenanceName != m.Name || r.Status.Working[0].AttemptCount != 1 {
		t.Errorf("status is %+v, want %s", r.Status.Working[0], m.Name)
	}
}

func TestDrainHasADeadline(t *testing.T) {
	t.Parallel()
	timeout := func(seconds int32) func(*v1alpha1.NodeRolloutSpec) {
		return func(s *v1alpha1.NodeRolloutSpec) { s.Failure.DrainTimeoutSeconds = new(seconds) }
	}
	for name, test := range map[string]struct {
		spec []func(*v1alpha1.NodeRolloutSpec)
		want string
	}{
		"by default":                  {nil, "2026-11-30T12:30:00Z"},
		"another timeout":             {[]func(*v1alpha1.NodeRolloutSpec){timeout(60)}, "2026-11-30T12:01:00Z"},
		"no timeout":                  {[]func(*v1alpha1.NodeRolloutSpec){timeout(0)}, ""},
		"the window ends before":      {[]func(*v1alpha1.NodeRolloutSpec){timeout(7200), window("10:00", "13:00")}, "2026-11-30T13:00:00Z"},
		"the window ends later":       {[]func(*v1alpha1.NodeRolloutSpec){window("10:00", "13:00")}, "2026-11-30T12:30:00Z"},
		"no timeout, a window":        {[]func(*v1alpha1.NodeRolloutSpec){timeout(0), window("10:00", "13:00")}, "2026-11-30T13:00:00Z"},
		"no timeout, windows all day": {[]func(*v1alpha1.NodeRolloutSpec){timeout(0), window("10:00", "10:00")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a")
			started(test.spec...)(w)
			got := ""
			if d := w.of("a").Spec.Deadline; d != nil {
				got = d.Time.UTC().Format(time.RFC3339)
				difference.None(t, "action", v1alpha1.DeadlineGiveBack, d.OnDeadline)
			}
			difference.None(t, "deadline", test.want, got)
		})
	}
}

func TestNamesOfNodeMaintenancesAreShortAndDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("node-", 50)
	for _, end := range []string{"1", "2"} {
		w.join(long + end)
	}
	w.start(strings.Repeat("r", 63), unavailable("2"))
	w.decide()
	if len(w.maintenances) != 2 || w.maintenances[0].Name == w.maintenances[1].Name {
		t.Fatalf("%d NodeMaintenances", len(w.maintenances))
	}
	if name := w.maintenances[0].Name; len(name) > 128 || strings.Contains(name, "--") {
		t.Errorf("name %s", name)
	}
}

func TestDeletedRolloutReleasesItsNodeMaintenances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.start("patch", unavailable("3"))
	w.decide()
	ended, drained, draining := w.of("a").Name, w.of("b").Name, w.of("c").Name
	w.succeed("a")
	w.accept(drained)
	w.drain(drained)
	w.accept(draining)
	w.deleteRollout("patch")
	w.decide()
	w.decide()
	if _, at := find(w.maintenances, ended); at >= 0 {
		t.Error("the NodeMaintenance that has ended is left")
	}
	if m, _ := find(w.maintenances, drained); !isLive(m) || m.Labels[v1alpha1.RolloutLabel] != "" || slices.Contains(m.Finalizers, v1alpha1.RolloutFinalizer) ||
		m.Annotations[v1alpha1.RolloutAttemptAnnotation] != "" || m.Spec.Stage != v1alpha1.StageDrain {
		t.Errorf("the node that is drained does not stay so: %+v", m)
	}
	if m, _ := find(w.maintenances, draining); m.Spec.Stage != v1alpha1.StageComplete || m.Labels[v1alpha1.RolloutLabel] == "" {
		t.Errorf("the node that drains is not given back: %+v", m)
	}
	if _, at := find(w.rollouts, "patch"); at < 0 {
		t.Fatal("the rollout is gone before its nodes are given back")
	}
	w.finish(draining)
	w.decide()
	w.decide()
	w.decide()
	if len(w.rollouts) > 0 || len(w.maintenances) != 1 {
		t.Errorf("%d rollouts and %d NodeMaintenances are left", len(w.rollouts), len(w.maintenances))
	}
}

func TestOrphansAreReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	w.start("patch", unavailable("2"))
	w.decide()
	w.accept(w.of("a").Name)
	w.succeed("b")
	w.rollouts = nil
	w.decide()
	w.decide()
	if len(w.maintenances) != 1 || len(w.maintenances[0].Finalizers) != 1 || w.maintenances[0].Labels[v1alpha1.RolloutLabel] != "" || !isLive(w.maintenances[0]) {
		t.Errorf("%d NodeMaintenances are left: %+v", len(w.maintenances), w.maintenances)
	}
	w.checkIdle()
}

// said returns the reasons of the events of a decision.
func said(t *testing.T, d *rollout.Decision) (reasons []string) {
	t.Helper()
	for _, r := range d.Rollouts {
		for _, e := range r.Events {
			golden.Message(t, e.Reason, e.Message)
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

func TestEventsAreSaidOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	w.start("patch", twoMayFail)
	expect := func(want ...string) {
		t.Helper()
		difference.None(t, "events", want, said(t, w.decide()))
		difference.None(t, "events again", []string(nil), said(t, w.decide()))
	}
	expect(v1alpha1.EventRolloutNodeStarted)
	w.accept(w.of("a").Name)
	w.completeAndFinish(w.of("a").Name)
	expect(v1alpha1.EventRolloutNodeStarted, v1alpha1.EventRolloutNodeFailed)
	w.succeed("b")
	expect(v1alpha1.EventRolloutComplete)
}

func TestDecisionNamesItsWakeTime(t *testing.T) {
	t.Parallel()
	drained := then(begun(), onA((*world).drain))
	aDone := func(w *world) { w.succeed("a") }
	for name, test := range map[string]struct {
		happens func(*world)
		after   time.Duration
	}{
		"never":                {begun(), 0},
		"work":                 {drained, time.Hour},
		"work without a clock": {then(drained, func(w *world) { w.skewed = true }), 0},
		"soak":                 {then(begun(func(s *v1alpha1.NodeRolloutSpec) { s.SoakSeconds = 90 }), aDone), 90 * time.Second},
		"canary": {then(begun(func(s *v1alpha1.NodeRolloutSpec) {
			s.Canary = &v1alpha1.RolloutCanary{NodeCount: 1, SoakSeconds: 120}
		}), aDone), 2 * time.Minute},
		"window opens":          {created(window("22:00", "04:00")), 10 * time.Hour},
		"too little time":       {created(window("10:00", "13:00")), 30*time.Minute + 1},
		"window ends":           {created(window("10:00", "12:10")), 10 * time.Minute},
		"paused with a window":  {created(paused, window("10:00", "13:00")), 0},
		"complete with windows": {then(created(skipping("a"), skipping("b"), skipping("c"), window("10:00", "13:00"))), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b", "c")
			test.happens(w)
			w.settle()
			wake := rollout.Decide(w.snapshot()).WakeTime
			want := time.Time{}
			if test.after > 0 {
				want = w.now.Add(test.after)
			}
			if !wake.Equal(want) {
				t.Errorf("wakes at %s, want %s", wake, want)
			}
		})
	}
}

func TestEstimateFollowsTheNodesThatAreDone(t *testing.T) {
	t.Parallel()
	estimate := func(w *world) string {
		w.settle()
		r, _ := find(w.rollouts, "patch")
		if at := r.Status.EstimatedCompletionTime; at != nil {
			return at.Sub(w.now).Round(time.Minute).String()
		}
		return ""
	}
	w := newWorld(t, "a", "b", "c", "d", "e")
	started(unavailable("2"))(w)
	difference.None(t, "before the first", "", estimate(w))
	w.now = w.now.Add(10 * time.Minute)
	w.succeed("a")
	w.succeed("b")
	difference.None(t, "two rounds of three nodes", "21m0s", estimate(w))
	w.now = w.now.Add(time.Minute)
	difference.None(t, "a minute later it stays", "20m0s", estimate(w))
	w.now = w.now.Add(19 * time.Minute)
	difference.None(t, "much later it follows", "21m0s", estimate(w))
	spec(paused)(w)
	difference.None(t, "paused", "", estimate(w))
	spec(func(s *v1alpha1.NodeRolloutSpec) { s.State, s.SoakSeconds = v1alpha1.RolloutRunning, 600 })(w)
	difference.None(t, "with soak", "41m0s", estimate(w))
	spec(window("01:00", "02:00"))(w)
	difference.None(t, "nodes wait for a window", "", estimate(w))
	spec(skipping("e"))(w)
	difference.None(t, "only nodes under maintenance are left", "21m0s", estimate(w))
	for _, name := range []string{"c", "d"} {
		w.accept(w.of(name).Name)
		w.succeedAccepted(name)
	}
	difference.None(t, "complete", "", estimate(w))
}

func TestEstimateOfAShortRolloutIsNotRoundedToMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c", "d", "e")
	started()(w)
	for _, test := range []struct {
		node string
		left time.Duration
	}{{"a", 33 * time.Second}, {"b", 25 * time.Second}} {
		w.now = w.now.Add(8 * time.Second)
		w.succeed(test.node)
		w.settle()
		r, _ := find(w.rollouts, "patch")
		difference.None(t, test.node, test.left.String(), r.Status.EstimatedCompletionTime.Sub(w.now).String())
	}
}

func TestTimeLeftIsThatOfNineTenthsOfTheNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	started(window("10:00", "16:00"))(w)
	w.now = w.now.Add(90 * time.Minute)
	w.succeed("a")
	w.now = time.Date(2026, 11, 30, 14, 30, 0, 0, time.UTC)
	w.settle()
	r, _ := find(w.rollouts, "patch")
	difference.None(t, "90 minutes are left", []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}, shown(&r.Status))
	w.succeed("b")
	w.now = w.now.Add(time.Second)
	w.settle()
	r, _ = find(w.rollouts, "patch")
	difference.None(t, "less is left", []string{"2 done", "c wait: Window"}, shown(&r.Status))
}

func TestListsOfStatusAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 300 {
		w.join(fmt.Sprintf("n%03d", n))
	}
	started(unavailable("100%"), func(s *v1alpha1.NodeRolloutSpec) { s.Failure.MaxFailures = new(intstr.FromString("50%")) })(w)
	w.settle()
	r, _ := find(w.rollouts, "patch")
	if r.Status.WorkingCount != 256 || len(r.Status.Working) != 256 || r.Status.WaitingCount != 44 || len(r.Status.Waiting[0].Nodes) != 5 {
		t.Errorf("%d under maintenance, %d listed, %d wait, %d listed", r.Status.WorkingCount, len(r.Status.Working), r.Status.WaitingCount, len(r.Status.Waiting[0].Nodes))
	}
	golden.Message(t, r.Status.Waiting[0].Reason, r.Status.Waiting[0].Message)
	for _, node := range r.Status.Working[:30] {
		w.accept(node.NodeMaintenanceName)
		w.completeAndFinish(node.NodeMaintenanceName)
	}
	w.settle()
	r, _ = find(w.rollouts, "patch")
	if r.Status.FailedCount != 30 || len(r.Status.Failed) != 20 {
		t.Errorf("%d failed, %d listed", r.Status.FailedCount, len(r.Status.Failed))
	}
}

func TestReadNamesFieldAtFault(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*v1alpha1.NodeRolloutSpec){
		"spec.nodeSelector": func(s *v1alpha1.NodeRolloutSpec) { s.NodeSelector = nil },
		"spec.nodeSelector.": func(s *v1alpha1.NodeRolloutSpec) {
			s.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Is"
		},
		"spec.target:":                    func(s *v1alpha1.NodeRolloutSpec) { s.Target = &v1alpha1.CompleteWhen{} },
		"spec.target.kubeletVersion":      func(s *v1alpha1.NodeRolloutSpec) { s.Target = &v1alpha1.CompleteWhen{KubeletVersion: ">=1"} },
		"spec.windows[0].from":            window("1", "2"),
		"spec.maxUnavailable: must be at": func(s *v1alpha1.NodeRolloutSpec) { s.MaxUnavailable = new(intstr.FromInt32(0)) },
		"spec.maxUnavailable: must be a ": func(s *v1alpha1.NodeRolloutSpec) { s.MaxUnavailable = new(intstr.FromString("101%")) },
		"spec.failure.maxFailures":        func(s *v1alpha1.NodeRolloutSpec) { s.Failure.MaxFailures = new(intstr.FromString("0%")) },
		"spec.failure.maxFailures: must":  func(s *v1alpha1.NodeRolloutSpec) { s.Failure.MaxFailures = new(intstr.FromString("7")) },
	} {
		w := newWorld(t)
		w.start("patch", change)
		_, err := rollout.Read(&w.rollouts[0].Spec)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want one of field %s", err, want)
			continue
		}
		golden.Message(t, err.Error())
	}
	w := newWorld(t)
	w.start("patch", unavailable("100%"), func(s *v1alpha1.NodeRolloutSpec) { s.Failure.MaxFailures = new(intstr.FromInt32(1)) })
	if _, err := rollout.Read(&w.rollouts[0].Spec); err != nil {
		t.Error(err)
	}
}

// A rollout that is complete keeps its status, and releases the NodeMaintenances of former nodes.
func TestCompleteRolloutReleasesFormerNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	w.start("patch", unavailable("2"))
	w.decide()
	w.succeed("a")
	w.succeed("b")
	w.settle()
	before, _ := find(w.rollouts, "patch")
	w.deleteNode("b")
	recreated(w)
	w.decide()
	w.decide()
	if len(w.maintenances) > 0 {
		t.Errorf("%d NodeMaintenances are left", len(w.maintenances))
	}
	after, _ := find(w.rollouts, "patch")
	difference.None(t, "status", before.Status, after.Status)
}

// Rollouts that are complete do not look at each node.
func TestCompleteRolloutsCostLittle(t *testing.T) {
	allocations := func(rollouts int) float64 {
		w := newWorld(t)
		for n := range 200 {
			w.join(fmt.Sprintf("n%03d", n), hasTarget)
		}
		for i := range rollouts {
			w.start(fmt.Sprintf("r%02d", i))
		}
		w.decide()
		snapshot := w.snapshot()
		return testing.AllocsPerRun(3, func() { rollout.Decide(snapshot) })
	}
	if one, many := allocations(1), allocations(21); many-one > 20*100 {
		t.Errorf("%.0f allocations for 21 complete rollouts over 200 nodes, %.0f for one", many, one)
	}
}
