package api

import (
	"fmt"
	"strings"
	"testing"
)

func TestStageMovesForward(t *testing.T) {
	t.Parallel()
	c := server(t)
	stages := []string{"Idle", "Cordon", "Drain", "Complete"}
	for i, from := range stages {
		o := create(t, c, maintenance("from-"+strings.ToLower(from), anyNode+"\nstage: "+from))
		for _, to := range stages[i:] {
			if err := patch(t, c, o, "spec: {stage: "+to+"}"); err != nil {
				t.Errorf("%s to %s is refused: %v", from, to, err)
			}
		}
	}
	// Every one of them is in Complete now, which is final.
	for _, from := range stages {
		o := object(t, maintenance("from-"+strings.ToLower(from), anyNode))
		for _, to := range stages[:3] {
			words := fmt.Sprintf("stage cannot go back from Complete to %s; it only moves forward along Idle, Cordon, Drain, Complete: create another NodeMaintenance instead", to)
			refusal{"spec.stage": words}.expect(t, patch(t, c, o, "spec: {stage: "+to+"}"))
		}
	}
}

func TestChangeOfNodeMaintenanceIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	const immutable = "drainPlan is immutable; complete or delete this NodeMaintenance and create another one with the new plan"
	tests := map[string]struct {
		before, change string
		want           refusal
	}{
		"a stage back": {
			"stage: Drain", "spec: {stage: Cordon}",
			refusal{"spec.stage": "stage cannot go back from Drain to Cordon"},
		},
		"a stage taken away": {
			"stage: Cordon", "spec: {stage: null}",
			refusal{"spec.stage": "stage cannot go back from Cordon to Idle"},
		},
		"a plan added": {
			"stage: Idle", "spec: {drainPlan: [{podPriority: 1}]}",
			refusal{"spec.drainPlan": immutable},
		},
		"an entry added to an empty plan": {
			"drainPlan: []", "spec: {drainPlan: [{podPriority: 1}]}",
			refusal{"spec.drainPlan": immutable},
		},
		"a plan removed": {
			"drainPlan: [{podPriority: 1}]", "spec: {drainPlan: null}",
			refusal{"spec.drainPlan": immutable},
		},
		"a plan emptied": {
			"drainPlan: [{podPriority: 1}]", "spec: {drainPlan: []}",
			refusal{"spec.drainPlan": immutable},
		},
		"an entry added": {
			"drainPlan: [{podPriority: 1}]", "spec: {drainPlan: [{podPriority: 1}, {podPriority: 2}]}",
			refusal{"spec.drainPlan": immutable},
		},
		"a priority changed": {
			"drainPlan: [{podPriority: 1}]", "spec: {drainPlan: [{podPriority: 2}]}",
			refusal{"spec.drainPlan": immutable},
		},
		"a selector changed": {
			"drainPlan: [{podPriority: 1, podSelector: {matchLabels: {app: a}}}]",
			"spec: {drainPlan: [{podPriority: 1, podSelector: {matchLabels: {app: b}}}]}",
			refusal{"spec.drainPlan": immutable},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := create(t, c, maintenance("change-"+strings.ReplaceAll(name, " ", "-"), anyNode+"\n"+test.before))
			test.want.expect(t, patch(t, c, o, test.change))
		})
	}
}

func TestNodesCannotBeGivenBackInEveryStageOrTakenAgain(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range map[string]struct {
		before, change string
		want           refusal
	}{
		"a node given back that is not held": {
			"stage: Idle", "spec: {completedNodes: [{name: a}]}",
			refusal{"spec.completedNodes": "completedNodes can be added to in stages Cordon and Drain only"},
		},
		"a node given back with all": {
			"stage: Drain", "spec: {completedNodes: [{name: a}], stage: Complete}",
			refusal{"spec.completedNodes": "completedNodes can be added to in stages Cordon and Drain only"},
		},
		"a node taken again": {
			"stage: Drain\ncompletedNodes: [{name: a}, {name: b}]", "spec: {completedNodes: [{name: b}, {name: c}]}",
			refusal{"spec.completedNodes": "completedNodes only grows: these nodes have been given back"},
		},
		"all nodes taken again": {
			"stage: Drain\ncompletedNodes: [{name: a}, {name: b}]", "spec: {completedNodes: null}",
			refusal{"spec.completedNodes": "completedNodes only grows: these nodes have been given back"},
		},
		"a node given back twice": {
			"stage: Drain", "spec: {completedNodes: [{name: a}, {name: a}]}",
			refusal{"spec.completedNodes[1]": "Duplicate value"},
		},
		"too many given back": {
			"stage: Drain", "spec: {completedNodes: [" + strings.Join(numbered(257), ", ") + "]}",
			refusal{"spec.completedNodes": "must have at most 256 items"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := create(t, c, maintenance("change-"+strings.ReplaceAll(name, " ", "-"), anyNode+"\n"+test.before))
			test.want.expect(t, patch(t, c, o, test.change))
		})
	}
}

func numbered(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("{name: node-%d}", i)
	}
	return names
}

func TestNodesAreGivenBackOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, maintenance("gives-back", anyNode+"\nstage: Cordon"))
	for _, change := range []string{
		"spec: {completedNodes: [{name: a}]}",
		"spec: {completedNodes: [{name: a}], stage: Drain}",
		"spec: {completedNodes: [{name: b}, {name: a}]}",
		"spec: {completedNodes: [" + strings.Join(append(numbered(254), "{name: a}", "{name: b}"), ", ") + "]}",
		"spec: {stage: Complete}",
		"spec: {reason: it is over}",
	} {
		if err := patch(t, c, o, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
}

func TestSelectorAndReasonMayChange(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, maintenance("may-change", anyNode+"\nstage: Drain\ndrainPlan: [{podPriority: 1}]"))
	change := `
spec:
  reason: more nodes
  drainDepth: Default
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a, b]}]}]}`
	if err := patch(t, c, o, change); err != nil {
		t.Errorf("refused: %v", err)
	}
}
