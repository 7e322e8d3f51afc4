package bridge_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

// shown is the Machine with the condition that a decision has.
func shown(t *testing.T, c *metav1.Condition) bridge.Snapshot {
	t.Helper()
	s := world(t)
	s.Node, s.Machine.Drained = nil, c
	return s
}

func TestADrainElsewhereIsShownOnItsMachine(t *testing.T) {
	t.Parallel()
	s := shown(t, nil)
	s.Remote = &bridge.Remote{Left: 2, Report: "* a: no budget allows it\n* b: terminates"}
	first := bridge.Decide(s).Condition
	if first == nil || first.Type != v1alpha1.ConditionBridgeDrained || first.Status != metav1.ConditionFalse ||
		first.Reason != v1alpha1.EventBridgeDraining || first.Message != "2 pods left on node-7. "+s.Remote.Report || !first.LastTransitionTime.Time.Equal(now) {
		t.Fatalf("%+v", first)
	}

	s.Machine.Drained, s.Now = first, now.Add(time.Minute)
	if again := bridge.Decide(s).Condition; again != nil {
		t.Errorf("the same is written again: %+v", again)
	}
	s.Remote = &bridge.Remote{Left: 1, Failed: true, Report: "* a: forbidden" + strings.Repeat("!", 100_000)}
	blocked := bridge.Decide(s).Condition
	if blocked == nil || blocked.Reason != v1alpha1.EventBridgeBlocked || len(blocked.Message) > 10_000 || !blocked.LastTransitionTime.Time.Equal(now) {
		t.Errorf("%+v", blocked)
	}
	s.Remote = &bridge.Remote{Problem: "cluster infra/prod is unreachable"}
	if lost := bridge.Decide(s).Condition; lost == nil || lost.Reason != v1alpha1.EventBridgeWaiting || lost.Message != "waits: cluster infra/prod is unreachable" {
		t.Errorf("%+v", lost)
	}
	s.Remote = &bridge.Remote{Done: true}
	if done := bridge.Decide(s).Condition; done == nil || done.Status != metav1.ConditionTrue || done.Reason != v1alpha1.EventBridgeDone || !done.LastTransitionTime.Time.Equal(s.Now) {
		t.Errorf("%+v", done)
	}
}

// Before there is a NodeMaintenance, or while it is paused, only the Machine can say what is
// waited for.
func TestMachineShowsTheCauseOfItsWait(t *testing.T) {
	t.Parallel()
	s := world(t)
	s.Machine.Others = []bridge.Hook{{Name: "backup", Owner: "db-team"}}
	c := bridge.Decide(s).Condition
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.EventBridgeWaiting || c.Message != "waits for other pre-drain hooks: backup (owner: db-team)" {
		t.Errorf("%+v", c)
	}
	s = begun(t, world(t), 5)
	s.Machine.Drained = c
	if c := bridge.Decide(s).Condition; c == nil || c.Reason != v1alpha1.EventBridgeDraining ||
		c.Message != "node-7 is drained by NodeMaintenance cluster-api.infra.worker-1, which shows the progress." {
		t.Errorf("%+v", c)
	}
	s = bridge.Snapshot{Now: now, Machine: read(t, openShift), Around: &bridge.Around{Opt: "true"}}
	s.Machine.Deleting, s.Machine.Hooked, s.Machine.Waits = true, true, true
	if d := bridge.Decide(s); d.Said == nil || d.Condition != nil {
		t.Errorf("a Machine of OpenShift, which has no such condition: %+v", d.Condition)
	}
}

func TestTheConditionOfAMachineIsRead(t *testing.T) {
	t.Parallel()
	m := read(t, strings.Replace(waiting, "conditions: [", `conditions: [{type: ebbtide.dev/Drained, status: "False", reason: BridgeDraining, message: text, lastTransitionTime: "2026-03-01T12:01:00Z"}, `, 1))
	if !m.Waits || m.Drained == nil || m.Drained.Message != "text" || m.Drained.LastTransitionTime.Minute() != 1 {
		t.Errorf("waits: %v, %+v", m.Waits, m.Drained)
	}
}
