package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// of is a pod of node-7, with what else there is.
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

// held has a maintenance hold the node, which waits for budgets.
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

// never7 has two budgets never allow anything on node-7.
func never7(f *view.PodFacts) {
	f.Maintenances[0].Status.NodeStatuses[1].Blockers = []v1alpha1.Blocker{held1(v1alpha1.BlockerPDBUnsatisfiable, "web", 1), held1(v1alpha1.BlockerPDBUnsatisfiable, "db", 1)}
}

// onNoNode has the scheduler find no node.
func onNoNode(f *view.PodFacts) {
	f.Node = ""
	f.Pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 node(s) were unschedulable.",
		LastTransitionTime: metav1.NewTime(noon),
	}}
}

const (
	holds   = "NodeMaintenance kernel (stage Drain) holds the node: 1 of 2 nodes drained."
	isThere = "shop/db-0 is on node node-7."
	// noNodeSince is said of onNoNode.
	noNodeSince = "shop/db-0 is on no node since 2026-03-01T12:00:00Z (Unschedulable): 0/3 nodes are available: 3 node(s) were unschedulable."
	again       = "The scheduler tries again when there is room. Which nodes are cordoned, and for whom: kubectl ebbtide status"
)

func TestWhyAPodIsWhereItIs(t *testing.T) {
	t.Parallel()
	unknown := func(f *view.PodFacts) { f.Unknown = true }
	for name, test := range map[string]struct {
		facts view.PodFacts
		want  []string
	}{
		"nobody wants it to go":       {of(), []string{isThere, "Nobody asks it to leave: no NodeMaintenance holds its node."}},
		"it is on no node":            {of(func(f *view.PodFacts) { f.Node = "" }), []string{"shop/db-0 is on no node.", again}},
		"the scheduler finds no node": {of(onNoNode), []string{noNodeSince, again}},
		"its volume is on a node that is held": {of(onNoNode, held, func(f *view.PodFacts) {
			f.Stranded = &view.Stranded{Claim: "data-db-0", Volume: "pv-7", Nodes: []string{"node-7"}}
			f.Maintenances[0].Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(noon)}
		}), []string{
			noNodeSince, "Its volume pv-7 (claim data-db-0) can be used only on node node-7, which takes no pods during maintenance.",
			strings.Replace(holds, "Drain", "Drain, deadline "+noon.UTC().Format(time.RFC3339), 1), "It comes back when kernel is complete: kubectl ebbtide complete kernel",
		}},
		"what holds the node of its volume is not known": {of(onNoNode, func(f *view.PodFacts) {
			f.Stranded = &view.Stranded{Claim: "data-db-0", Volume: "pv-7", Nodes: []string{"node-1", "node-2", "node-3", "node-4"}}
		}), []string{
			noNodeSince, "Its volume pv-7 (claim data-db-0) can be used only on node node-1, node-2, node-3 and 1 more, which takes no pods during maintenance.", again,
		}},
		"it has time to end": {of(func(f *view.PodFacts) {
			f.Pod.DeletionTimestamp = ago(-time.Minute)
			f.Around = &view.Surroundings{Now: noon}
		}, held, asked(v1alpha1.EvacuationStatus{})), []string{
			"shop/db-0 terminates on node node-7, and has until " + noon.Add(time.Minute).UTC().Format(time.RFC3339) + " to end by itself.", holds, "It has been asked to leave.",
		}},
		"nobody knows who asks":    {of(unknown), []string{isThere, "Whether anybody has asked it to leave is unknown."}},
		"it terminates":            {of(func(f *view.PodFacts) { f.Pod.DeletionTimestamp = &metav1.Time{} }, held, asked(v1alpha1.EvacuationStatus{})), []string{"shop/db-0 terminates on node node-7.", holds, "It has been asked to leave."}},
		"its evacuator is at work": {of(held, asked(refusal("db", "False"))), []string{isThere, holds, "It has been asked to leave: Its evacuator is asked."}},
		"its replacement fits nowhere": {
			of(held, asked(v1alpha1.EvacuationStatus{ActiveEvacuatorClass: v1alpha1.DeploymentEvacuatorClass, Message: "Pod db-0 serves on.", Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionReplacementUnschedulable, Status: metav1.ConditionTrue, Message: "0/3 nodes are available.",
			}}})),
			[]string{
				isThere, holds, "No node has room for the replacement of the pod: 0/3 nodes are available. (ReplacementUnschedulable)",
				"What helps: Make room, or give cordoned nodes back: kubectl ebbtide status. Without room the pod is evicted when progressDeadlineSeconds of its Deployment are over",
			},
		},
		"its budget refuses":         {of(held, asked(refusal("db", "True"))), []string{isThere, holds, "Its eviction is refused (PDBExhausted): The budget db needs 2 pods.", "What helps: wait for db-1"}},
		"its budget never allows it": {of(held, asked(refusal("db", "True")), never7), []string{isThere, holds, "Its eviction is refused (PDBUnsatisfiable): db is used up.", "What helps: Wait for db."}},
		"another budget refuses":     {of(held, asked(refusal("cache", "True"))), []string{isThere, holds, "Its eviction is refused (PDBExhausted): The budget db needs 2 pods."}},
		"somebody refuses":           {of(held, asked(refusal("", "True"))), []string{isThere, holds, "Its eviction is refused (PDBExhausted): The budget db needs 2 pods.", "What helps: nor this one"}},
		"its turn is to come":        {of(held), []string{isThere, holds, `Nobody has asked it to leave yet: its turn is to come, or it stays on purpose. Which pods stay, and why: kubectl get nodemaintenance kernel -o jsonpath='{.status.nodeStatuses[?(@.nodeRef.name=="node-7")].retained}'`}},
		"the agent leaves it":        {of(held, said(v1alpha1.StaticPodUnmanageable, "FromURL", "It comes from a URL.")), []string{"shop/db-0 is a static pod of node node-7, Unmanageable (FromURL): It comes from a URL.", holds, "It stays, and nobody waits for it."}},
		"the agent would take it":    {of(said(v1alpha1.StaticPodRunning, "", "")), []string{"shop/db-0 is a static pod of node node-7, Running.", "Nobody asks it to leave: no NodeMaintenance holds its node."}},
		"the agent keeps it away":    {of(held, said(v1alpha1.StaticPodHeld, "", "db.yaml is put aside.")), []string{"shop/db-0 is a static pod of node node-7, Held: db.yaml is put aside.", holds, `It comes back when kernel is complete: kubectl ebbtide complete kernel`}},
		"the agent puts it aside":    {of(held, said(v1alpha1.StaticPodHolding, "Stuck", "It still runs.")), []string{"shop/db-0 is a static pod of node node-7, Holding (Stuck): It still runs.", holds, `It comes back when kernel is complete: kubectl ebbtide complete kernel`}},
		"the agent forgets it":       {of(said(v1alpha1.StaticPodHeld, "", "")), []string{"shop/db-0 is a static pod of node node-7, Held.", "No NodeMaintenance holds its node any more: the agent brings it back. Whether that answers: kubectl ebbtide agents node-7"}},
		"nobody knows who has it so": {of(unknown, said(v1alpha1.StaticPodHeld, "", "")), []string{"shop/db-0 is a static pod of node node-7, Held.", "Which NodeMaintenance keeps it away is unknown."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, test.facts.Why()); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
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
	if len(lines) != 1+5+1+5 || lines[6] != "So do 995 more NodeMaintenances." {
		t.Errorf("%d lines: %q", len(lines), lines[6])
	}
	for _, line := range lines {
		if strings.ContainsAny(line, "\x1b\n\x07") || len(line) > 1000 {
			t.Errorf("a line of %d bytes: %.100q", len(line), line)
		}
	}
}
