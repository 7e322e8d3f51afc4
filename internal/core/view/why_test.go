package view_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/golden"
)

func of(changes ...func(*view.PodFacts)) view.PodFacts {
	f := view.PodFacts{Namespace: "shop", Name: "db-0", Node: "node-7", Pod: &corev1.Pod{}}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func said(state v1alpha1.StaticPodState, reason, message string) func(*view.PodFacts) {
	return func(f *view.PodFacts) {
		f.Static = &v1alpha1.StaticPod{State: state, Reason: reason, Message: message}
	}
}

func held(f *view.PodFacts) {
	refuses := func(budget, help string) v1alpha1.Blocker {
		return v1alpha1.Blocker{
			Type: v1alpha1.BlockerPDBExhausted, Suggestion: help, Object: v1alpha1.BlockerObject{Kind: "PodDisruptionBudget", Namespace: "shop", Name: budget},
		}
	}
	f.Maintenances = append(f.Maintenances, &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "kernel"}, Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain},
		Status: v1alpha1.NodeMaintenanceStatus{Summary: "1 of 2 nodes drained.", NodeStatuses: []v1alpha1.NodeMaintenanceNodeStatus{
			{NodeRef: v1alpha1.NodeReference{Name: "node-8"}, Blockers: []v1alpha1.Blocker{refuses("db", "not this one")}},
			{NodeRef: v1alpha1.NodeReference{Name: "node-7"}, Blockers: []v1alpha1.Blocker{refuses("web", "nor this one"), refuses("db", "wait for db-1")}},
		}},
	})
}

func asked(status v1alpha1.EvacuationStatus) func(*view.PodFacts) {
	return func(f *view.PodFacts) { f.Evacuation = &v1alpha1.Evacuation{Status: status} }
}

func refusal(budget string, status metav1.ConditionStatus) v1alpha1.EvacuationStatus {
	return v1alpha1.EvacuationStatus{Message: "Its evacuator is asked.", RefusingBudgetName: budget, Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionEvictionRefused, Status: status, Reason: string(v1alpha1.BlockerPDBExhausted), Message: "The budget db needs 2 pods.",
	}}}
}

func never7(f *view.PodFacts) {
	f.Maintenances[0].Status.NodeStatuses[1].Blockers = []v1alpha1.Blocker{held1(v1alpha1.BlockerPDBUnsatisfiable, "web", 1), held1(v1alpha1.BlockerPDBUnsatisfiable, "db", 1)}
}

func onNoNode(f *view.PodFacts) {
	f.Node = ""
	f.Pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 node(s) were unschedulable.",
		LastTransitionTime: metav1.NewTime(noon),
	}}
}

// tell has testdata/messages.txt keep what is said of each.
func tell[F any](t *testing.T, all map[string]F, why func(F) []string) {
	t.Helper()
	for name, facts := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Message(t, strings.Join(why(facts), "\n"))
		})
	}
}

func TestWhyAPodIsWhereItIs(t *testing.T) {
	t.Parallel()
	unknown := func(f *view.PodFacts) { f.Unknown = true }
	tell(t, map[string]view.PodFacts{
		"nobody wants it to go":       of(),
		"it is on no node":            of(func(f *view.PodFacts) { f.Node = "" }),
		"the scheduler finds no node": of(onNoNode),
		"its volume is on a node that is held": of(onNoNode, held, func(f *view.PodFacts) {
			f.Stranded = &view.Stranded{Claim: "data-db-0", Volume: "pv-7", Nodes: []string{"node-7"}}
			f.Maintenances[0].Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(noon)}
		}),
		"what holds the node of its volume is not known": of(onNoNode, func(f *view.PodFacts) {
			f.Stranded = &view.Stranded{Claim: "data-db-0", Volume: "pv-7", Nodes: []string{"node-1", "node-2", "node-3", "node-4"}}
		}),
		"it has time to end": of(func(f *view.PodFacts) {
			f.Pod.DeletionTimestamp = ago(-time.Minute)
			f.Around = &view.Surroundings{Now: noon}
		}, held, asked(v1alpha1.EvacuationStatus{})),
		"nobody knows who asks":    of(unknown),
		"it terminates":            of(func(f *view.PodFacts) { f.Pod.DeletionTimestamp = &metav1.Time{} }, held, asked(v1alpha1.EvacuationStatus{})),
		"its evacuator is at work": of(held, asked(refusal("db", "False"))),
		"its replacement fits nowhere": of(held, asked(v1alpha1.EvacuationStatus{ActiveEvacuatorClass: v1alpha1.DeploymentEvacuatorClass, Message: "Pod db-0 serves on.", Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReplacementUnschedulable, Status: metav1.ConditionTrue, Message: "0/3 nodes are available.",
		}}})),
		"its budget refuses":         of(held, asked(refusal("db", "True"))),
		"its budget never allows it": of(held, asked(refusal("db", "True")), never7),
		"another budget refuses":     of(held, asked(refusal("cache", "True"))),
		"somebody refuses":           of(held, asked(refusal("", "True"))),
		"its turn is to come":        of(held),
		"the agent leaves it":        of(held, said(v1alpha1.StaticPodUnmanageable, "FromURL", "It comes from a URL.")),
		"the agent would take it":    of(said(v1alpha1.StaticPodRunning, "", "")),
		"the agent keeps it away":    of(held, said(v1alpha1.StaticPodHeld, "", "db.yaml is put aside.")),
		"the agent puts it aside":    of(held, said(v1alpha1.StaticPodHolding, "Stuck", "It still runs.")),
		"the agent forgets it":       of(said(v1alpha1.StaticPodHeld, "", "")),
		"nobody knows who has it so": of(unknown, said(v1alpha1.StaticPodHeld, "", "")),
	}, view.PodFacts.Why)
}

// Whoever may write a status, or the annotation of a Node, neither fills the screen nor
// commands the terminal.
func TestWhyIsShortWhateverOthersWrite(t *testing.T) {
	t.Parallel()
	evil := strings.Repeat("\x1b]0;owned\x07\n", 10_000)
	f := of(said(v1alpha1.StaticPodHeld, evil, evil), asked(v1alpha1.EvacuationStatus{Message: evil}))
	for range 1000 {
		held(&f)
		f.Maintenances[len(f.Maintenances)-1].Status.Summary = evil
	}
	lines := f.Why()
	if len(lines) != 1+5+1+5 || lines[6] != "995 more NodeMaintenances hold it." {
		t.Errorf("%d lines: %q", len(lines), lines[6])
	}
	for _, line := range lines {
		if strings.ContainsAny(line, "\x1b\n\x07") || len(line) > 1000 {
			t.Errorf("a line of %d bytes: %.100q", len(line), line)
		}
	}
}
