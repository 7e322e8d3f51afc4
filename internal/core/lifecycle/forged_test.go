package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// victim is a Node of somebody else with a pod, which the shell has found under
// the name in status.nodeRef.
func victim(s *lifecycle.Snapshot, uid string) {
	s.Machine.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: "victim", UID: "victim-uid"}
	if uid != "victim-uid" {
		s.Machine.Status.NodeRef.UID = ""
	}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "victim", UID: "victim-uid"}, Spec: corev1.NodeSpec{ProviderID: "docker://victim"}}
	s.Nodes = append([]*corev1.Node{other}, s.Nodes...)
	s.Drain.Pods = []*corev1.Pod{pod("a")}
}

// TestAForgedNodeIsNotDrained: whatever status.nodeRef says, nothing is done to a
// Node that has not the Machine's providerID; the Node that has it is the Machine's.
func TestAForgedNodeIsNotDrained(t *testing.T) {
	t.Parallel()
	alone := func(s *lifecycle.Snapshot) { s.Nodes = s.Nodes[:1] }
	run(t, map[string]story{
		"another Node instead of the Machine's own":             {draining, func(s *lifecycle.Snapshot) { victim(s, "victim-uid") }, "Recording, record", "", ""},
		"another Node without a UID":                            {draining, func(s *lifecycle.Snapshot) { victim(s, "") }, "Recording, record", "", ""},
		"another Node, and the Machine has none":                {draining, func(s *lifecycle.Snapshot) { victim(s, "victim-uid"); alone(s) }, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped NotFound"},
		"another Node, and only the Node is left to be deleted": {leaving, func(s *lifecycle.Snapshot) { victim(s, "victim-uid"); alone(s) }, "DeletionCompleted, drop finalizer", "", "NodeDeleted"},
		"another Node, and the Machine has no providerID": {draining, func(s *lifecycle.Snapshot) {
			victim(s, "victim-uid")
			s.Machine.Spec.ProviderID, s.Infrastructure.Object.ProviderID = "", ""
		}, "DrainingNode", "Drained=False/DrainError", "Unknown DrainError"},
		"a Node that registered under another name": {draining, func(s *lifecycle.Snapshot) { s.Nodes[0].Name, s.Nodes[0].UID = "node-9", "uid-9" }, "Recording, record", "", ""},
		"another Node of a Machine that runs":       {running, func(s *lifecycle.Snapshot) { victim(s, "victim-uid") }, "WaitingForNode, record", "", ""},
	})
}

// TestAForgedTimeEndsNoStep: no step begins before the deletion, whatever was
// written down before it.
func TestAForgedTimeEndsNoStep(t *testing.T) {
	t.Parallel()
	longAgo := metav1.NewTime(start.AddDate(-1, 0, 0))
	run(t, map[string]story{
		"a drain that was over before the deletion": {running, func(s *lifecycle.Snapshot) {
			s.Machine.Status.Deletion = &v1alpha1.MachineDeletionStatus{WaitForNodeVolumeDetachStartTime: &longAgo}
		}, "Running, forget the deletion", "", ""},
		"a drain that began long before the deletion": {draining, func(s *lifecycle.Snapshot) {
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
			s.Machine.Status.Deletion.NodeDrainStartTime, s.Now = &longAgo, after(599)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
		}, "DrainingNode, evict app/a, look again in 1s", "", "DrainStarted"},
	})
}
