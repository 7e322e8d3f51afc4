package maintenance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// refuse lets the API server refuse to evict a pod because of a budget.
func (w *world) refuse(pod *corev1.Pod) {
	w.evacuations[pod.UID].Status.RefusingBudgetName = "web"
	w.evacuations[pod.UID].Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue, Reason: string(v1alpha1.BlockerPDBExhausted),
		Message: "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 3 healthy pods and has 3 currently",
	}}
}

func TestConditionsOfADrain(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", idle, nil, "one", "two")
	pods := w.run("one", 3, 0)
	expect := func(what, drained, blocked string, urgent bool) maintenance.MaintenanceDecision {
		t.Helper()
		w.now = w.now.Add(time.Minute)
		d := w.pass().Maintenances[0]
		got := []string{conditionOf(m, v1alpha1.ConditionDrained), conditionOf(m, v1alpha1.ConditionBlocked)}
		if diff := cmp.Diff([]string{drained, blocked}, got); diff != "" || d.Urgent != urgent {
			t.Errorf("%s: urgent is %t, Drained and Blocked (-want +got):\n%s", what, d.Urgent, diff)
		}
		return d
	}
	expect("planned", "none", "none", false)
	m.Spec.Stage, m.Generation = v1alpha1.StageCordon, 2
	expect("before the cordon is seen", "none", "False NotBlocked", true)
	if d := expect("cordoned", "none", "False NotBlocked", false); d.Status.ObservedGeneration != 2 {
		t.Errorf("the observed generation is %d, want 2", d.Status.ObservedGeneration)
	}
	m.Spec.Stage = drain
	if d := expect("draining", "False Draining", "False NotBlocked", true); !d.Record {
		t.Error("the stage is not recorded")
	}
	began := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained).LastTransitionTime
	w.refuse(pods[0])
	w.refuse(pods[1])
	expect("blocked", "False Blocked", "True PDBExhausted", true)
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained); !c.LastTransitionTime.Equal(&began) {
		t.Error("the transition time has moved without the status")
	}
	w.leave("one", 0)
	d := expect("drained", "True Drained", "False NotBlocked", true)
	if diff := cmp.Diff([]string{"Node/one NodeDrained", "NodeMaintenance/m Drained"}, reasons(d.Events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if d := expect("still drained", "True Drained", "False NotBlocked", false); len(d.Events) > 0 {
		t.Errorf("events are repeated: %v", reasons(d.Events))
	}
	m.Spec.Stage = complete
	expect("complete", "none", "none", true)
}

func TestNoNodes(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "elsewhere")
	events := w.pass().Maintenances[0].Events
	if diff := cmp.Diff([]string{"NodeMaintenance/m StageStarted", "NodeMaintenance/m NoNodes"}, reasons(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNoNodes {
		t.Errorf("Drained is %+v, want False because of NoNodes", c)
	}
	if again := w.pass().Maintenances[0].Events; len(again) > 0 {
		t.Errorf("it is told again: %v", reasons(again))
	}
}

func TestInvalidSpecBlocksNoOtherMaintenance(t *testing.T) {
	for name, breaks := range map[string]func(*v1alpha1.NodeMaintenanceSpec){
		"no selector": func(s *v1alpha1.NodeMaintenanceSpec) { s.NodeSelector = nil },
		"selector": func(s *v1alpha1.NodeMaintenanceSpec) {
			s.NodeSelector = labelledNodes("name", "one")
			s.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
		},
		"pod selector": func(s *v1alpha1.NodeMaintenanceSpec) {
			s.DrainPlan = []v1alpha1.DrainPlanEntry{entry("Default", 5), entryFor("not a label", "Default", 1)}
		},
		"pod type": func(s *v1alpha1.NodeMaintenanceSpec) { s.DrainPlan = []v1alpha1.DrainPlanEntry{entry("Odd", 5)} },
		"depth":    func(s *v1alpha1.NodeMaintenanceSpec) { s.DrainDepth = "Odd" },
		"stage":    func(s *v1alpha1.NodeMaintenanceSpec) { s.Stage = "Odd" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("broken", drain, nil, "one")
			breaks(&m.Spec)
			good := w.maintenance("good", drain, nil, "one")
			w.run("one", 1, 0)
			d := w.pass()
			if got := conditionOf(m, v1alpha1.ConditionBlocked); got != "True InvalidSpec" {
				t.Errorf("Blocked is %s", got)
			}
			if diff := cmp.Diff([]string{"NodeMaintenance/broken InvalidSpec"}, reasons(d.Maintenances[0].Events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			w.expectStatus("the other maintenance", good, "one 1+0 Evacuating [Default 1000000000]")
		})
	}
}

func TestInvalidSpecKeepsItsNodes(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	w.run("one", 2, 0)
	w.pass()
	listed := lines(m)
	m.Spec.NodeSelector = nil
	if d := w.pass(); len(d.Nodes) > 0 {
		t.Errorf("something is taken back: %+v", d.Nodes)
	}
	if diff := cmp.Diff(listed, lines(m)); diff != "" {
		t.Errorf("what was recorded is lost (-want +got):\n%s", diff)
	}
	m.DeletionTimestamp = metaTime(w.now)
	for range 4 {
		w.pass()
	}
	if w.find("one").Spec.Unschedulable || len(w.evacuations) > 0 || len(m.Finalizers) > 0 {
		t.Error("its deletion does not give everything back")
	}
}

func TestNodeConditions(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	m := w.maintenance("m", idle, nil, "one")
	m.Spec.Reason = "new kernel"
	w.run("one", 1, 0)
	expect := func(what string, want ...string) {
		t.Helper()
		w.pass()
		w.pass()
		var got []string
		for _, conditionType := range []corev1.NodeConditionType{"MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress"} {
			if c := nodeCondition(node, conditionType); c.Type != "" {
				got = append(got, fmt.Sprintf("%s=%s", c.Type, c.Status))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("idle", "MaintenancePlanned=True")
	if c := nodeCondition(node, "MaintenancePlanned"); c.Reason != v1alpha1.ReasonNodeMaintenance || c.Message != "m (new kernel)" {
		t.Errorf("condition is %+v", c)
	}
	m.Spec.Stage = drain
	expect("draining", "MaintenancePlanned=False", "DrainInProgress=True", "Drained=False")
	w.leave("one", 0)
	expect("drained", "MaintenancePlanned=False", "DrainInProgress=False", "Drained=True", "MaintenanceInProgress=True")
	other := w.maintenance("other", idle, nil, "one")
	expect("the most advanced wins", "MaintenancePlanned=False", "DrainInProgress=False", "Drained=True", "MaintenanceInProgress=True")
	m.Spec.Stage = complete
	expect("only the idle one is left", "MaintenancePlanned=True", "DrainInProgress=False", "Drained=False", "MaintenanceInProgress=False")
	w.maintenances = nil
	expect("nobody announces anything")
	if other.Spec.Stage != idle {
		t.Error("an idle maintenance was touched")
	}
}

func TestStatusOfAHugeMaintenance(t *testing.T) {
	const nodes = 5000
	w := newWorld(t)
	for n := range nodes {
		w.node(fmt.Sprintf("ip-10-0-%04d.eu-central-1.compute.internal", n)).Labels = map[string]string{"pool": "all"}
	}
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{
		entryFor("postgres", "Default", 10), entry("Default", 10), entryFor("web", "Default", 1000), entry("Default", 1000),
	})
	m.Spec.NodeSelector = labelledNodes("pool", "all")
	busy := w.nodes[nodes-1].Name
	w.run(busy, 1, 1000)
	w.run(w.nodes[7].Name, 1, 1000)
	w.pass()
	w.pass()

	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 1<<20 {
		t.Errorf("the object has %d bytes", len(text))
	}
	listed := len(m.Status.NodeStatuses)
	if listed < 1000 || listed == nodes {
		t.Fatalf("%d nodes are listed", listed)
	}
	if got := m.Status.NodeStatuses[1].NodeRef.Name; got != busy {
		t.Errorf("the second listed node is %s, want the second one with pods, %s", got, busy)
	}
	if want := fmt.Sprintf("4998/5000 nodes drained, 2 pods left, %d nodes not listed", nodes-listed); m.Status.Summary != want {
		t.Errorf("summary is %q, want %q", m.Status.Summary, want)
	}

	// A pod of low priority takes the maintenance back in its plan. A node that is
	// left out keeps its target: another pod that comes there leaves at once.
	leftOut := w.nodes[nodes-2].Name
	w.run(busy, 1, 0)
	w.run(leftOut, 1, 900)
	w.now = w.now.Add(time.Hour)
	decision := w.pass()
	for _, d := range decision.Nodes {
		if d.Node.Name == leftOut && len(d.Evacuate) == 1 {
			return
		}
	}
	t.Error("the node that was left out has lost its target")
}

func TestStatusOfTwoHugeMaintenances(t *testing.T) {
	plan := func(first, second int32) []v1alpha1.DrainPlanEntry {
		var entries []v1alpha1.DrainPlanEntry
		for _, app := range []string{"postgres", "web", "shop", "queue", "cache", "mail"} {
			entries = append(entries, entryFor(app, "Default", first))
		}
		return append(entries, entry("Default", second))
	}
	w := newWorld(t)
	for n := range 5000 {
		node := w.node(fmt.Sprintf("ip-10-0-%04d.eu-central-1.compute.internal", n))
		node.Labels = map[string]string{"pool": "all", "half": fmt.Sprint(n / 2600)}
	}
	w.maintenance("half", drain, plan(-10, 0)).Spec.NodeSelector = labelledNodes("half", "1")
	all := w.maintenance("all", drain, plan(10, 100))
	all.Spec.NodeSelector = labelledNodes("pool", "all")
	w.run(w.nodes[0].Name, 1, 50)
	w.run(w.nodes[4999].Name, 1, 0)
	w.pass()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 1<<20 {
		t.Errorf("the object has %d bytes", len(text))
	}
	if !w.settled() {
		t.Error("the shortened targets are recorded again and again")
	}
}

// settled returns true if another pass has nothing to record.
func (w *world) settled() bool {
	w.pass()
	return !slices.ContainsFunc(maintenance.Decide(w.snapshot()).Maintenances, func(d maintenance.MaintenanceDecision) bool { return d.Record })
}
