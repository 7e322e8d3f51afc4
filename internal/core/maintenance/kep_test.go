package maintenance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
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

// The section "Pod Selection and DrainTargets Example" of KEP-4212, number by
// number and message by message.
func TestPodSelectionAndDrainTargetsExample(t *testing.T) {
	w := newWorld(t, "one", "two", "three", "four")
	a := w.maintenance("maintenance-a", v1alpha1.StageDrain, planOf(5000, 15000, 3000), "one", "two")
	b := w.maintenance("maintenance-b", v1alpha1.StageDrain, planOf(10000, 15000, 4000), "one", "three")

	w.run("one", 10, 5000)
	w.run("one", 30, 10000)
	w.run("one", 70, 15000)
	w.run("two", 7, 5000)
	nine := w.run("two", 9, 15000)
	w.run("two", 21, 15000)
	w.run("three", 25, 10000)
	w.run("three", 45, 15000)

	step := func(what string, wantA, wantB []string) {
		t.Helper()
		w.pass() // asks for what the targets cover
		w.pass() // counts it
		if diff := cmp.Diff(wantA, lines(a)); diff != "" {
			t.Errorf("%s: maintenance-a (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(wantB, lines(b)); diff != "" {
			t.Errorf("%s: maintenance-b (-want +got):\n%s", what, diff)
		}
	}

	step("the entry with the lowest priority is resolved first", []string{
		"one 100+10 Evacuating [Default 5000]",
		"two 30+7 Evacuating [Default 5000]",
	}, []string{
		"one 100+10 Evacuating (limited by maintenance-a) [Default 5000]",
		"three 45+25 Evacuating [Default 10000]",
	})

	w.leave("three", 10000)
	w.pods["one"] = w.pods["one"][5:]
	w.pods["two"] = w.pods["two"][5:]
	step("the node three is drained and waits for the node one", []string{
		"one 100+5 Evacuating [Default 5000]",
		"two 30+2 Evacuating [Default 5000]",
	}, []string{
		"one 100+5 Evacuating (limited by maintenance-a) [Default 5000]",
		"three 45+0 Waiting for node one. [Default 10000]",
	})

	w.leave("one", 5000)
	step("the node one is drained and waits for the node two", []string{
		"one 100+0 Waiting for node two. [Default 5000]",
		"two 30+2 Evacuating [Default 5000]",
	}, []string{
		"one 100+0 Waiting for node two (maintenance-a). [Default 5000]",
		"three 45+0 Waiting for node two (maintenance-a). [Default 10000]",
	})

	w.leave("two", 5000)
	w.pass()
	// The KEP shows the moment at which 9 of the 30 have begun.
	for uid := range w.evacuations {
		if !isOneOf(nine, uid) && uid > "uid-0110" {
			delete(w.evacuations, uid)
		}
	}
	decision := w.snapshotDecision()
	if diff := cmp.Diff([]string{
		"one 70+30 Evacuating (limited by maintenance-b) [Default 10000]",
		"two 21+9 Evacuating [Default 15000]",
	}, linesOf(decision.Maintenances[0].Status)); diff != "" {
		t.Errorf("the targets of maintenance-a are incremented (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"one 70+30 Evacuating [Default 10000]",
		"three 45+0 Waiting for node one. [Default 10000]",
	}, linesOf(decision.Maintenances[1].Status)); diff != "" {
		t.Errorf("the targets of maintenance-b are incremented (-want +got):\n%s", diff)
	}

	c := w.maintenance("maintenance-c", v1alpha1.StageDrain, []v1alpha1.DrainPlanEntry{
		entry(v1alpha1.PodTypeDefault, 2000), entry(v1alpha1.PodTypeDefault, 15000),
	}, "one", "four")
	w.run("four", 5, 2000)
	w.run("four", 20, 15000)
	first := w.pass()
	w.pass()
	if diff := cmp.Diff([]string{
		"one 70+30 Evacuating (fast-forwarded by older maintenance-b) [Default 10000]",
		"four 20+5 Evacuating [Default 2000]",
	}, swap(lines(c))); diff != "" {
		t.Errorf("maintenance-c is fast-forwarded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"NodeMaintenance/maintenance-c StageStarted", "NodeMaintenance/maintenance-c FastForwarded"},
		reasons(first.Maintenances[2].Events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	const want = "On node one the drain plan is fast-forwarded, because the drain of older maintenance-b has come further there and does not go back."
	if got := first.Maintenances[2].Events[1].Message; got != want {
		t.Errorf("event says %q, want %q", got, want)
	}
	if again := w.pass(); len(again.Maintenances[2].Events) > 0 {
		t.Errorf("the next pass tells it again: %v", again.Maintenances[2].Events)
	}
}

// The section "PodTypes and Label Selectors Progression" of KEP-4212.
func TestPodTypesAndLabelSelectorsProgression(t *testing.T) {
	w := newWorld(t, "five")
	w.runners.DaemonSets = true
	w.runners.Agents = map[string]bool{"five": true}
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
