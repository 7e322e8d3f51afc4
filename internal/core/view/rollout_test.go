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

// night is a rollout of three nodes, one of which has failed.
func night(edits ...func(*v1alpha1.NodeRollout)) *v1alpha1.NodeRollout {
	r := &v1alpha1.NodeRollout{
		ObjectMeta: metav1.ObjectMeta{Name: "night", Generation: 2},
		Spec: v1alpha1.NodeRolloutSpec{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		}}}},
		Status: v1alpha1.NodeRolloutStatus{
			ObservedGeneration: 2, Summary: "0 of 9 nodes done.", NodeCount: 9, WorkingCount: 1, WaitingCount: 7, FailedCount: 1,
			Working: []v1alpha1.RolloutNode{{Name: "two", NodeMaintenanceName: "night-two", Reason: v1alpha1.RolloutNodeDraining, Message: "Its pods are leaving."}},
			Failed:  []v1alpha1.RolloutNode{{Name: "one", NodeMaintenanceName: "night-one", Reason: v1alpha1.RolloutNodeWorkTimedOut, Message: "The node did not return."}},
			Waiting: []v1alpha1.RolloutWait{
				{Reason: v1alpha1.RolloutWaitsForUnavailable, Message: "Unavailable: two. At most 1 node may be.", NodeCount: 6, Nodes: []v1alpha1.NodeReference{{Name: "three"}}},
				{Reason: v1alpha1.RolloutWaitsForReady, Message: "These nodes are not Ready.", NodeCount: 1, Nodes: []v1alpha1.NodeReference{{Name: "four"}}},
			},
		},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// poolNode is a node of pool a.
func poolNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "a"}}}
}

func TestWhyOfANodeInARollout(t *testing.T) {
	t.Parallel()
	facts := map[string]view.NodeFacts{}
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		facts["node "+name] = view.NodeFacts{Now: noon, Node: poolNode(name), Rollouts: []*v1alpha1.NodeRollout{night(func(r *v1alpha1.NodeRollout) {
			r.Spec.Nodes = []v1alpha1.RolloutNodeSpec{{Name: "six", Skip: true}}
		})}}
	}
	facts["one of several reasons"] = view.NodeFacts{Now: noon, Node: poolNode("five"), Rollouts: []*v1alpha1.NodeRollout{night(func(r *v1alpha1.NodeRollout) {
		r.Status.Waiting[1].NodeCount = 2
	})}}
	other := poolNode("five")
	other.Labels = nil
	facts["another pool"] = view.NodeFacts{Now: noon, Node: other, Rollouts: []*v1alpha1.NodeRollout{night()}}
	budget := func(name, summary string, selector *corev1.NodeSelector) *v1alpha1.NodeBudget {
		return &v1alpha1.NodeBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeBudgetSpec{NodeSelector: selector}, Status: v1alpha1.NodeBudgetStatus{Summary: summary}}
	}
	elsewhere := night().Spec.NodeSelector
	elsewhere.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "b"
	budgets := []*v1alpha1.NodeBudget{
		budget("workers", "1 of 9 nodes unavailable, at most 1 may be: two (under maintenance)", night().Spec.NodeSelector),
		budget("elsewhere", "0 of 3 nodes unavailable, at most 1 may be", elsewhere),
	}
	facts["under a NodeBudget"] = view.NodeFacts{Now: noon, Node: poolNode("three"), Rollouts: []*v1alpha1.NodeRollout{night()}, NodeBudgets: budgets}
	facts["under a NodeBudget, of no rollout"] = view.NodeFacts{Now: noon, Node: poolNode("three"), NodeBudgets: budgets}
	tell(t, facts, func(f view.NodeFacts) []string { return f.Why() })
}

func TestWhyOfARollout(t *testing.T) {
	t.Parallel()
	complete := func(r *v1alpha1.NodeRollout) {
		r.Spec.After = v1alpha1.AfterStayDrained
		r.Status = v1alpha1.NodeRolloutStatus{ObservedGeneration: 2, CompletedGeneration: 2, NodeCount: 2, DoneCount: 1, SkippedCount: 1, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionRolloutComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRolloutComplete},
		}}
	}
	tell(t, map[string]*v1alpha1.NodeRollout{
		"nodes wait and have failed": night(),
		"it is paused":               night(func(r *v1alpha1.NodeRollout) { r.Spec.State = v1alpha1.RolloutPaused }),
		"its nodes stay drained":     night(complete),
		"nothing has seen it": night(func(r *v1alpha1.NodeRollout) {
			r.Status, r.Annotations = v1alpha1.NodeRolloutStatus{}, map[string]string{v1alpha1.RequestedByAnnotation: "anna"}
		}),
		"its spec is invalid": night(func(r *v1alpha1.NodeRollout) {
			r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRolloutComplete, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalidSpec}}
		}),
	}, func(r *v1alpha1.NodeRollout) []string {
		shown := view.RolloutOf(r)
		return view.RolloutWhy(&shown)
	})
	returned := view.RolloutOf(night(complete))
	if returned.Returned = true; returned.Help() != "" {
		t.Errorf("help for a rollout whose nodes were returned: %s", returned.Help())
	}
}

// A rollout has ended when it starts no more nodes and none is under maintenance.
func TestRolloutEnds(t *testing.T) {
	t.Parallel()
	condition := func(kind, reason string) func(*v1alpha1.NodeRollout) {
		return func(r *v1alpha1.NodeRollout) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason})
		}
	}
	idle := func(r *v1alpha1.NodeRollout) { r.Status.Working, r.Status.WorkingCount = nil, 0 }
	drained := func(r *v1alpha1.NodeRollout) { r.Status.Working[0].Reason = v1alpha1.RolloutNodeDrained }
	stopped := condition(v1alpha1.ConditionRolloutDegraded, v1alpha1.RolloutWaitsForFailures)
	complete := condition(v1alpha1.ConditionRolloutComplete, v1alpha1.ReasonRolloutComplete)
	aborted := func(r *v1alpha1.NodeRollout) { r.Spec.State = v1alpha1.RolloutAborted }
	changed := func(r *v1alpha1.NodeRollout) { r.Generation++ }
	for name, tt := range map[string]struct {
		rollout *v1alpha1.NodeRollout
		state   view.State
		ended   bool
	}{
		"in progress":                      {night(), view.StateRunning, false},
		"complete":                         {night(idle, complete), view.StateComplete, true},
		"complete before a change":         {night(idle, complete, changed), view.StateRunning, false},
		"stopped beside a drain":           {night(stopped), view.StateStopped, false},
		"stopped":                          {night(stopped, idle), view.StateStopped, true},
		"failed below the limit":           {night(idle, condition(v1alpha1.ConditionRolloutDegraded, v1alpha1.ReasonRolloutNodesFailed)), view.StateRunning, false},
		"aborted beside a drain":           {night(aborted), view.StateAborted, false},
		"aborted beside a drained node":    {night(aborted, drained), view.StateAborted, true},
		"aborted, which was not seen yet":  {night(aborted, drained, changed), view.StateAborted, false},
		"paused":                           {night(idle, func(r *v1alpha1.NodeRollout) { r.Spec.State = v1alpha1.RolloutPaused }), view.StatePaused, false},
		"being deleted":                    {night(idle, func(r *v1alpha1.NodeRollout) { r.DeletionTimestamp = ago(time.Minute) }), view.StateDeleting, false},
		"with more nodes than it can list": {night(idle, stopped, func(r *v1alpha1.NodeRollout) { r.Status.WorkingCount = 1 }), view.StateStopped, false},
	} {
		if shown := view.RolloutOf(tt.rollout); shown.State != tt.state || shown.Ended() != tt.ended {
			t.Errorf("%s: state %s, ended %v", name, shown.State, shown.Ended())
		}
	}
}

func TestChangesOfARolloutAreToldOnce(t *testing.T) {
	t.Parallel()
	first := view.RolloutOf(night())
	later := view.RolloutOf(night(func(r *v1alpha1.NodeRollout) {
		r.Status.Working[0].Reason, r.Status.Working[0].Message = v1alpha1.RolloutNodeDrained, ""
		r.Spec.State = v1alpha1.RolloutPaused
	}))
	starting := view.RolloutOf(night(func(r *v1alpha1.NodeRollout) { r.Status.Working[0].Reason = v1alpha1.RolloutNodeStarting }))
	unseen := view.RolloutOf(night(func(r *v1alpha1.NodeRollout) { r.Generation++ }))
	for name, tt := range map[string]struct {
		before, after *view.RolloutStatus
		want          string
	}{
		"at first":         {nil, &first, "night: 0 of 9 nodes done.\ntwo (Draining): Its pods are leaving.\none (WorkTimedOut): The node did not return."},
		"nothing":          {&first, &first, ""},
		"a node is ahead":  {&first, &later, "night: paused, 0 of 9 nodes done.\ntwo: Drained"},
		"a node starts":    {&first, &starting, ""},
		"nothing has seen": {nil, &unseen, ""},
	} {
		if diff := cmp.Diff(tt.want, strings.Join(view.RolloutChanges(tt.before, tt.after), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
