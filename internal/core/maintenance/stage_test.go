package maintenance_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

const (
	idle     = v1alpha1.StageIdle
	drain    = v1alpha1.StageDrain
	complete = v1alpha1.StageComplete
)

func started(stages ...v1alpha1.NodeMaintenanceStage) []v1alpha1.StageStatus {
	var all []v1alpha1.StageStatus
	for _, stage := range stages {
		at := metav1.NewTime(dawn)
		all = append(all, v1alpha1.StageStatus{Name: stage, StartTimestamp: &at})
	}
	return all
}

// verdict is what is decided about the object itself.
type verdict struct {
	complete, add, drop, record bool
	stages                      []v1alpha1.NodeMaintenanceStage
}

func verdictOf(d maintenance.MaintenanceDecision) verdict {
	v := verdict{complete: d.Complete, add: d.AddFinalizer, drop: d.DropFinalizer, record: d.Record}
	for _, s := range d.Status.StageStatuses {
		v.stages = append(v.stages, s.Name)
	}
	return v
}

func TestStagesAndFinalizer(t *testing.T) {
	type stages = []v1alpha1.NodeMaintenanceStage
	for name, test := range map[string]struct {
		stage               v1alpha1.NodeMaintenanceStage
		finalizer, deleting bool
		recorded            stages
		want                verdict
	}{
		"no stage is Idle":                   {stage: "", want: verdict{stages: stages{idle}}},
		"Idle":                               {stage: idle, want: verdict{stages: stages{idle}}},
		"Idle is deleted":                    {stage: idle, deleting: true, want: verdict{}},
		"Idle with a finalizer is deleted":   {stage: idle, deleting: true, finalizer: true, want: verdict{drop: true}},
		"Cordon starts":                      {stage: v1alpha1.StageCordon, want: verdict{add: true, record: true, stages: stages{v1alpha1.StageCordon}}},
		"Drain starts":                       {stage: drain, want: verdict{add: true, record: true, stages: stages{v1alpha1.StageCordon, drain}}},
		"Drain follows Cordon":               {stage: drain, finalizer: true, recorded: stages{v1alpha1.StageCordon}, want: verdict{record: true, stages: stages{v1alpha1.StageCordon, drain}}},
		"Cordon goes on":                     {stage: v1alpha1.StageCordon, finalizer: true, recorded: stages{v1alpha1.StageCordon}, want: verdict{stages: stages{v1alpha1.StageCordon}}},
		"Cordon has lost its finalizer":      {stage: v1alpha1.StageCordon, recorded: stages{v1alpha1.StageCordon}, want: verdict{add: true, stages: stages{v1alpha1.StageCordon}}},
		"Idle goes to Complete":              {stage: complete, want: verdict{add: true, record: true, stages: stages{complete}}},
		"Complete follows Drain":             {stage: complete, finalizer: true, recorded: stages{drain}, want: verdict{record: true, stages: stages{drain, complete}}},
		"Complete has nothing left to do":    {stage: complete, finalizer: true, recorded: stages{drain, complete}, want: verdict{drop: true, stages: stages{drain, complete}}},
		"Complete is done":                   {stage: complete, recorded: stages{drain, complete}, want: verdict{stages: stages{drain, complete}}},
		"Drain is deleted":                   {stage: drain, deleting: true, finalizer: true, recorded: stages{drain}, want: verdict{complete: true, record: true, stages: stages{drain, complete}}},
		"deleted and set to Complete":        {stage: complete, deleting: true, finalizer: true, recorded: stages{drain}, want: verdict{record: true, stages: stages{drain, complete}}},
		"deleted with nothing left to do":    {stage: complete, deleting: true, finalizer: true, recorded: stages{drain, complete}, want: verdict{drop: true, stages: stages{drain, complete}}},
		"deleted and let go, others hold it": {stage: complete, deleting: true, recorded: stages{drain, complete}, want: verdict{stages: stages{drain, complete}}},
		"deleted before anything was done":   {stage: drain, deleting: true, want: verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", test.stage, nil, "elsewhere")
			m.Status.StageStatuses = started(test.recorded...)
			if test.finalizer {
				m.Finalizers = []string{"other", v1alpha1.MaintenanceCompletionFinalizer}
			}
			if test.deleting {
				m.DeletionTimestamp = &metav1.Time{Time: w.now}
			}
			got := verdictOf(maintenance.Decide(w.snapshot()).Maintenances[0])
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvacuationsOfUnknownPodsHoldTheFinalizer(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", complete, nil, "one")
	m.Finalizers = []string{v1alpha1.MaintenanceCompletionFinalizer}
	m.Status.StageStatuses = started(drain, complete)
	snapshot := w.snapshot()
	delete(snapshot.Pods, "one")
	if maintenance.Decide(snapshot).Maintenances[0].DropFinalizer {
		t.Error("the finalizer is dropped although nobody knows the pods of the node")
	}
}

func TestForbiddenCancellation(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	w.run("one", 5, 0)
	w.pass()
	for _, evacuation := range w.evacuations {
		evacuation.Status.EvacuationCancellationPolicy = v1alpha1.CancellationForbid
	}
	m.Spec.Stage = complete
	decision := w.pass()
	if got := decision.Nodes[0].Withdraw; len(got) > 0 {
		t.Errorf("withdrawn are %v, want none", got)
	}
	events := decision.Nodes[0].Events
	if got := reasons(events); !slices.Contains(got, "Node/one CancellationForbidden") || !slices.Contains(got, "NodeMaintenance/m CancellationForbidden") {
		t.Errorf("events are %v, want one on the node and one on the maintenance", got)
	}
	again := w.pass()
	if len(again.Nodes) > 0 {
		t.Errorf("it is told again: %v", reasons(again.Nodes[0].Events))
	}
	if !again.Maintenances[0].DropFinalizer {
		t.Error("what may not be withdrawn holds the finalizer")
	}
}
