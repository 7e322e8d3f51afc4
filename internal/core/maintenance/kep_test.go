package maintenance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

func entry(podType v1alpha1.PodType, priority int32) v1alpha1.DrainPlanEntry {
	return v1alpha1.DrainPlanEntry{PodType: podType, PodPriority: priority}
}

func entryFor(app string, podType v1alpha1.PodType, priority int32) v1alpha1.DrainPlanEntry {
	return v1alpha1.DrainPlanEntry{
		PodType: podType, PodPriority: priority,
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}
}

func planOf(first, second, daemonSets int32) []v1alpha1.DrainPlanEntry {
	return []v1alpha1.DrainPlanEntry{
		entry(v1alpha1.PodTypeDefault, first), entry(v1alpha1.PodTypeDefault, second), entry(v1alpha1.PodTypeDaemonSet, daemonSets),
	}
}

// kepExample is the world of the section "Pod Selection and DrainTargets
// Example" of KEP-4212, with pods such that the printed numbers come out.
type kepExample struct {
	*world
	a, b *v1alpha1.NodeMaintenance
}

func newKEPExample(t *testing.T) *kepExample {
	w := newWorld(t, "one", "two", "three", "four")
	example := &kepExample{
		world: w,
		a:     w.maintenance("maintenance-a", v1alpha1.StageDrain, planOf(5000, 15000, 3000), "one", "two"),
		b:     w.maintenance("maintenance-b", v1alpha1.StageDrain, planOf(10000, 15000, 4000), "one", "three"),
	}
	w.run("one", 10, 5000)
	w.run("one", 30, 10000)
	w.run("one", 70, 15000)
	w.run("two", 7, 5000)
	w.run("two", 30, 15000)
	w.run("three", 25, 10000)
	w.run("three", 45, 15000)
	return example
}

// steps are the examples of the section up to the third maintenance, each with
// what happens before it.
var steps = []struct {
	what         string
	happens      func(*kepExample)
	wantA, wantB []string
}{{
	"the entry with the lowest priority is resolved first",
	func(e *kepExample) { e.pass() },
	[]string{
		"one 100+10 Evacuating [Default 5000]",
		"two 30+7 Evacuating [Default 5000]",
	},
	[]string{
		"one 100+10 Evacuating (limited by maintenance-a) [Default 5000]",
		"three 45+25 Evacuating [Default 10000]",
	},
}, {
	"the node three is drained and waits for the node one",
	func(e *kepExample) {
		e.leave("three", 10000)
		e.pods["one"] = e.pods["one"][5:]
		e.pods["two"] = e.pods["two"][5:]
	},
	[]string{
		"one 100+5 Evacuating [Default 5000]",
		"two 30+2 Evacuating [Default 5000]",
	},
	[]string{
		"one 100+5 Evacuating (limited by maintenance-a) [Default 5000]",
		"three 45+0 Waiting for node one. [Default 10000]",
	},
}, {
	"the node one is drained and waits for the node two",
	func(e *kepExample) { e.leave("one", 5000) },
	[]string{
		"one 100+0 Waiting for node two. [Default 5000]",
		"two 30+2 Evacuating [Default 5000]",
	},
	[]string{
		"one 100+0 Waiting for node two (maintenance-a). [Default 5000]",
		"three 45+0 Waiting for node two (maintenance-a). [Default 10000]",
	},
}, {
	"the node two is drained and the targets are incremented",
	func(e *kepExample) {
		e.leave("two", 5000)
		e.pass()
		e.hesitate("two", 9)
	},
	[]string{
		"one 70+30 Evacuating (limited by maintenance-b) [Default 10000]",
		"two 21+9 Evacuating [Default 15000]",
	},
	[]string{
		"one 70+30 Evacuating [Default 10000]",
		"three 45+0 Waiting for node one. [Default 10000]",
	},
}}

// hesitate leaves only some of a node's evacuations: the KEP shows the moment
// at which the others have not begun.
func (e *kepExample) hesitate(node string, begun int) {
	for _, pod := range e.pods[node][begun:] {
		delete(e.evacuations, pod.UID)
	}
}

func TestPodSelectionAndDrainTargetsExample(t *testing.T) {
	e := newKEPExample(t)
	for _, step := range steps {
		step.happens(e)
		seen := e.pass()
		if diff := cmp.Diff(step.wantA, linesOf(seen.Maintenances[0].Status)); diff != "" {
			t.Errorf("%s: maintenance-a (-want +got):\n%s", step.what, diff)
		}
		if diff := cmp.Diff(step.wantB, linesOf(seen.Maintenances[1].Status)); diff != "" {
			t.Errorf("%s: maintenance-b (-want +got):\n%s", step.what, diff)
		}
	}
}

// The third maintenance of the section comes when the others are under way.
func TestFastForwardExample(t *testing.T) {
	e := newKEPExample(t)
	for _, step := range steps {
		step.happens(e)
		e.pass()
	}
	c := e.maintenance("maintenance-c", v1alpha1.StageDrain, []v1alpha1.DrainPlanEntry{
		entry(v1alpha1.PodTypeDefault, 2000), entry(v1alpha1.PodTypeDefault, 15000),
	}, "one", "four")
	e.run("four", 5, 2000)
	e.run("four", 20, 15000)

	first := e.pass().Maintenances[2].Events
	e.pass()
	if diff := cmp.Diff([]string{
		"four 20+5 Evacuating [Default 2000]",
		"one 70+30 Evacuating (fast-forwarded by older maintenance-b) [Default 10000]",
	}, lines(c)); diff != "" {
		t.Errorf("maintenance-c (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"NodeMaintenance/maintenance-c StageStarted", "NodeMaintenance/maintenance-c FastForwarded"}, reasons(first)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	if again := e.pass().Maintenances[2].Events; len(again) > 0 {
		t.Errorf("the next pass tells it again: %v", reasons(again))
	}
}

// The section "PodTypes and Label Selectors Progression" of KEP-4212.
func TestPodTypesAndLabelSelectorsProgression(t *testing.T) {
	w := newWorld(t, "five")
	w.runners.DaemonSets = true
	w.runners.Agents = map[string]maintenance.Agent{"five": {}}
	m := w.maintenance("progress", v1alpha1.StageDrain, []v1alpha1.DrainPlanEntry{
		entry(v1alpha1.PodTypeDefault, 1000),
		entryFor("postgres", v1alpha1.PodTypeDefault, 2000),
		entry(v1alpha1.PodTypeDefault, 2147483647),
		entry(v1alpha1.PodTypeDaemonSet, 1000),
		entry(v1alpha1.PodTypeDaemonSet, 2147483647),
		entry(v1alpha1.PodTypeStatic, 2147483647),
	}, "five")
	stages := [][]*corev1.Pod{
		w.run("five", 1, 1000),
		w.run("five", 1, 2000, labelled("app", "postgres")),
		w.run("five", 1, 2147483647),
		w.run("five", 1, 1000, ofDaemonSet),
		w.run("five", 1, 2147483647, ofDaemonSet),
		w.run("five", 1, 2147483647, static),
	}
	want := []string{
		"Default 1000, Default 1000 app=postgres",
		"Default 2000 app=postgres",
		"Default 2147483647, Default 2147483647 app=postgres",
		"Default 2147483647, Default 2147483647 app=postgres, DaemonSet 1000",
		"Default 2147483647, Default 2147483647 app=postgres, DaemonSet 2147483647",
		"Default 2147483647, Default 2147483647 app=postgres, DaemonSet 2147483647, Static 2147483647",
	}
	want[1] = "Default 1000, " + want[1]
	for i := range stages {
		w.pass()
		if diff := cmp.Diff(want[i], targets(m.Status.NodeStatuses[0].DrainTargets)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i+1, diff)
		}
		w.pods["five"] = w.pods["five"][1:]
	}
}
