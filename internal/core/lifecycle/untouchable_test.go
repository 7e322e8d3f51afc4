package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// TestUntouchable: "There are cases where Node drain, wait for volume detach and
// Node deletion is skipped", each of them and what is none of them.
func TestUntouchable(t *testing.T) {
	t.Parallel()
	run(t, untouched)
}

var untouched = map[string]story{
	"the Cluster is being deleted": {deleted, func(s *lifecycle.Snapshot) {
		s.Cluster.Object.DeletionTimestamp = at(0)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		attach(s)
	}, "WaitingForInfrastructureDeletion, record", "Drained=True/Skipped DrainingSucceeded=False/Skipped VolumeDetachSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"the Cluster is being deleted, and nodes cannot be read any more": {deleted, func(s *lifecycle.Snapshot) {
		s.Cluster.Object.DeletionTimestamp = at(0)
		s.NodesProblem = "no route to host"
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped NodeReady=Unknown/Unknown", "Unknown DrainSkipped VolumeDetachSkipped"},
	"there are pre-drain hooks, which hold nothing then": {deleted, func(s *lifecycle.Snapshot) {
		s.Cluster.Object.DeletionTimestamp = at(0)
		s.Machine.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{{Name: "MigrateImportantApp", Owner: "app"}}
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"Pre-terminate hooks count even then": {deleted, func(s *lifecycle.Snapshot) {
		s.Cluster.Object.DeletionTimestamp = at(0)
		s.Machine.Spec.LifecycleHooks.PreTerminate = []v1alpha1.LifecycleHook{{Name: "BackupFileSytem", Owner: "backup"}}
	}, "WaitingForPreTerminateHook, record", "", "DrainSkipped VolumeDetachSkipped HeldByHooks"},
	"the Node is left": {leaving, func(s *lifecycle.Snapshot) { s.Cluster.Object.DeletionTimestamp = at(0) }, "DeletionCompleted, drop finalizer", "Deleting=True/DeletionCompleted", "NodeLeft"},
	"no nodeRef and no providerID": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes = nil, "", nil
		s.Infrastructure.Object.ProviderID = ""
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"no nodeRef and none found by providerID":                       {deleted, func(s *lifecycle.Snapshot) { s.Machine.Status.NodeRef, s.Nodes = nil, nil }, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"no nodeRef, but one found by providerID: it is recorded first": {deleted, func(s *lifecycle.Snapshot) { s.Machine.Status.NodeRef = nil }, "Recording, record", "", ""},
	"no providerID, but the infrastructure has one: it is recorded first": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes = nil, "", nil
	}, "Recording, record, set providerID docker://worker-1", "", ""},
	"the Node of the providerID is that of another Machine": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Status.NodeRef = nil
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		s.Siblings = []*v1alpha1.Machine{having("worker-2", "node-uid")}
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "NotOwned DrainSkipped VolumeDetachSkipped"},
	"the Node of the providerID is that of another Machine, and only the finalizer is left": {leaving, func(s *lifecycle.Snapshot) {
		s.Machine.Status.NodeRef = nil
		s.Siblings = []*v1alpha1.Machine{having("worker-2", "node-uid")}
	}, "DeletionCompleted, drop finalizer", "", "NotOwned"},
	"the control plane is being deleted": {deleted, func(s *lifecycle.Snapshot) {
		s.ControlPlane = new(read(lifecycle.External{Kind: "KubeadmControlPlane", Name: "east", Deleting: true}))
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"the control plane is being deleted, which is asked before who manages it": {deleted, func(s *lifecycle.Snapshot) {
		s.ControlPlane = new(read(lifecycle.External{Kind: "KubeadmControlPlane", Name: "east", Deleting: true}))
		s.Cluster.Object.Spec.ControlPlane.ExternallyManaged = true
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"nobody knows whether the control plane is being deleted, and it is externally managed": {draining, func(s *lifecycle.Snapshot) {
		s.ControlPlane = new(unread("forbidden"))
		s.Cluster.Object.Spec.ControlPlane.ExternallyManaged = true
	}, "DrainingNode", "Drained=False/DrainError", "DrainError"},
	"the control plane does not exist, which is not the same as being deleted": {deleted, func(s *lifecycle.Snapshot) { s.ControlPlane = &lifecycle.Reading[lifecycle.External]{} }, "DrainingNode, record", "", ""},
	"no other control-plane Machine is left": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Labels = map[string]string{v1alpha1.ControlPlaneLabel: ""}
		s.Siblings = []*v1alpha1.Machine{{}}
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"all other control-plane Machines are being deleted": {deleted, func(s *lifecycle.Snapshot) { s.Siblings = []*v1alpha1.Machine{controlPlane(at(0))} }, "WaitingForInfrastructureDeletion, record", "", "DrainSkipped VolumeDetachSkipped"},
	"the Cluster had control-plane Machines once":        {deleted, func(s *lifecycle.Snapshot) { s.Cluster.Object.Status.ControlPlaneMachinesSeen = true }, "WaitingForInfrastructureDeletion, record", "", "DrainSkipped VolumeDetachSkipped"},
	"the Cluster never had control-plane Machines":       {deleted, nil, "DrainingNode, record", "", ""},
	"another control-plane Machine is left": {deleted, func(s *lifecycle.Snapshot) {
		s.Siblings = []*v1alpha1.Machine{controlPlane(at(0)), controlPlane(nil)}
	}, "DrainingNode, record", "", ""},
	"no control-plane Machine is left, but the control plane is externally managed": {deleted, func(s *lifecycle.Snapshot) {
		s.Cluster.Object.Status.ControlPlaneMachinesSeen = true
		s.Cluster.Object.Spec.ControlPlane.ExternallyManaged = true
	}, "DrainingNode, record", "", ""},
}

func controlPlane(deleted *metav1.Time) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.ControlPlaneLabel: ""}, DeletionTimestamp: deleted}}
}

// TestSpecialCases holds the decision to "Special cases" of the page.
func TestSpecialCases(t *testing.T) {
	t.Parallel()
	run(t, special)
}

var special = map[string]story{
	"If the Node doesn't exist anymore, Node drain is entirely skipped": {draining, func(s *lifecycle.Snapshot) {
		s.Nodes = nil
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		attach(s)
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped VolumeDetachSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped NotFound"},
	"the Node doesn't exist anymore, pre-drain hooks hold all the same": {deleted, func(s *lifecycle.Snapshot) {
		s.Nodes = nil
		annotate(s, v1alpha1.PreDrainHookAnnotationPrefix)
	}, "WaitingForPreDrainHook, record", "", "HeldByHooks NotFound"},
	"a Node of the same name is another one":       {draining, func(s *lifecycle.Snapshot) { s.Nodes[0].UID, s.Nodes[0].Spec.ProviderID = "other", "docker://other" }, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped NotFound"},
	"a Node of the same name may be the Machine's": {draining, func(s *lifecycle.Snapshot) { s.Nodes[0].UID, s.Nodes[0].Spec.ProviderID = "other", "" }, "DrainingNode", "Drained=False/DrainError", "Unknown DrainError"},
	"the Machine's Node has registered again":      {draining, func(s *lifecycle.Snapshot) { s.Nodes[0].UID = "other" }, "Recording, record", "", ""},
	"If the Node is unreachable: Pods with deletionTimestamp more than 1s in the past are ignored": {draining, func(s *lifecycle.Snapshot) {
		unreachable(s)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		s.Drain.Pods[0].DeletionTimestamp, s.Now = at(0), after(2)
		attach(s)
	}, "WaitingForInfrastructureDeletion, record", "Drained=True/Drained", "DrainStarted DrainCompleted VolumeDetachSkipped"},
	"a Pod whose deletionTimestamp is not that long ago is waited for, and looked at when it is": {draining, func(s *lifecycle.Snapshot) {
		unreachable(s)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		s.Drain.Pods[0].DeletionTimestamp = at(0)
	}, "DrainingNode, drain, look again in 1.001s", "", "DrainStarted"},
	"the limit of the drain is over before that": {draining, func(s *lifecycle.Snapshot) {
		unreachable(s)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		s.Drain.Pods[0].DeletionTimestamp = at(60)
		s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(30))
	}, "DrainingNode, drain, look again in 30s", "", "DrainStarted"},
	"PodDisruptionBudgets are still respected": {draining, func(s *lifecycle.Snapshot) {
		unreachable(s)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
	}, "DrainingNode, evict app/a", "", "DrainStarted"},
	"volumes of an unreachable Node are not waited for": {detaching, func(s *lifecycle.Snapshot) {
		unreachable(s)
		attach(s)
	}, "WaitingForInfrastructureDeletion, record", "VolumeDetachSucceeded=False/Skipped", "VolumeDetachSkipped"},
}

// TestUnreachableGracePeriod: "Pod evictions will use 1s GracePeriodSeconds".
func TestUnreachableGracePeriod(t *testing.T) {
	t.Parallel()
	s := draining()
	unreachable(&s)
	s.Drain.Pods = []*corev1.Pod{pod("a")}
	if grace := lifecycle.Decide(s).Drain.GracePeriodSeconds; grace == nil || *grace != 1 {
		t.Errorf("grace period: %v, want 1", grace)
	}
}

func unreachable(s *lifecycle.Snapshot) {
	s.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
}

func having(name string, node types.UID) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: "node-1", UID: node}
	return m
}
