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

var skipped = []string{"DrainSkipped", "VolumeDetachSkipped"}

var untouched = map[string]story{
	"the Cluster is being deleted": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Cluster.Object.DeletionTimestamp = at(0)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			attach(s)
		},
		does: "WaitingForInfrastructureDeletion, record",
		says: map[string]string{
			drainingCondition: "False/Skipped",
			volumesCondition:  "False/Skipped",
			drainedCondition:  "True/Skipped",
		},
		events: skipped,
	},
	"the Cluster is being deleted, and nodes cannot be read any more": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Cluster.Object.DeletionTimestamp = at(0)
			s.NodesProblem = "no route to host"
		},
		does: "WaitingForInfrastructureDeletion, record",
		says: map[string]string{
			drainingCondition: "False/Skipped",
			nodeCondition:     "Unknown/Unknown",
		},
		events: []string{"Unknown", "DrainSkipped", "VolumeDetachSkipped"},
	},
	"there are pre-drain hooks, which hold nothing then": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Cluster.Object.DeletionTimestamp = at(0)
			s.Machine.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{{Name: "MigrateImportantApp", Owner: "app"}}
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: skipped,
	},
	"Pre-terminate hooks count even then": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Cluster.Object.DeletionTimestamp = at(0)
			s.Machine.Spec.LifecycleHooks.PreTerminate = []v1alpha1.LifecycleHook{{Name: "BackupFileSytem", Owner: "backup"}}
		},
		does: "WaitingForPreTerminateHook, record", events: []string{"DrainSkipped", "VolumeDetachSkipped", "HeldByHooks"},
	},
	"the Node is left": {
		of: leaving, change: func(s *lifecycle.Snapshot) { s.Cluster.Object.DeletionTimestamp = at(0) },
		does:   "DeletionCompleted, drop finalizer",
		says:   map[string]string{deletingCondition: "True/DeletionCompleted"},
		events: []string{"NodeLeft"},
	},
	"no nodeRef and no providerID": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes = nil, "", nil
			s.Infrastructure.Object.ProviderID = ""
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: skipped,
	},
	"no nodeRef and none found by providerID": {
		of: deleted, change: func(s *lifecycle.Snapshot) { s.Machine.Status.NodeRef, s.Nodes = nil, nil },
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: skipped,
	},
	"no nodeRef, but one found by providerID: it is recorded first": {
		of: deleted, change: func(s *lifecycle.Snapshot) { s.Machine.Status.NodeRef = nil },
		does: "Recording, record",
	},
	"no providerID, but the infrastructure has one: it is recorded first": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes = nil, "", nil
		},
		does: "Recording, record, set providerID docker://worker-1",
	},
	"the Node of the providerID is that of another Machine": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Machine.Status.NodeRef = nil
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			s.Siblings = []*v1alpha1.Machine{having("worker-2", "node-uid")}
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: []string{"NotOwned", "DrainSkipped", "VolumeDetachSkipped"},
	},
	"the Node of the providerID is that of another Machine, and only the finalizer is left": {
		of: leaving, change: func(s *lifecycle.Snapshot) {
			s.Machine.Status.NodeRef = nil
			s.Siblings = []*v1alpha1.Machine{having("worker-2", "node-uid")}
		},
		does: "DeletionCompleted, drop finalizer", events: []string{"NotOwned"},
	},
	"the control plane is being deleted": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.ControlPlane = new(read(lifecycle.External{Kind: "KubeadmControlPlane", Name: "east", Deleting: true}))
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: skipped,
	},
	"the control plane is being deleted, which is asked before who manages it": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.ControlPlane = new(read(lifecycle.External{Kind: "KubeadmControlPlane", Name: "east", Deleting: true}))
			s.Cluster.Object.Spec.ControlPlane.ExternallyManaged = true
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: skipped,
	},
	"nobody knows whether the control plane is being deleted, and it is externally managed": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			s.ControlPlane = new(unread("forbidden"))
			s.Cluster.Object.Spec.ControlPlane.ExternallyManaged = true
		},
		does:   "DrainingNode",
		says:   map[string]string{drainedCondition: "False/DrainError"},
		events: []string{"DrainError"},
	},
	"the control plane does not exist, which is not the same as being deleted": {
		of: deleted, change: func(s *lifecycle.Snapshot) { s.ControlPlane = &lifecycle.Reading[lifecycle.External]{} },
		does: "DrainingNode, record",
	},
	"no other control-plane Machine is left": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Machine.Labels = map[string]string{v1alpha1.ControlPlaneLabel: ""}
			s.Siblings = []*v1alpha1.Machine{{}}
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: skipped,
	},
	"all other control-plane Machines are being deleted": {
		of: deleted, change: func(s *lifecycle.Snapshot) { s.Siblings = []*v1alpha1.Machine{controlPlane(at(0))} },
		does: "WaitingForInfrastructureDeletion, record", events: skipped,
	},
	"the Cluster had control-plane Machines once": {
		of: deleted, change: func(s *lifecycle.Snapshot) { s.Cluster.Object.Status.ControlPlaneMachinesSeen = true },
		does: "WaitingForInfrastructureDeletion, record", events: skipped,
	},
	"the Cluster never had control-plane Machines": {of: deleted, does: "DrainingNode, record"},
	"another control-plane Machine is left": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Siblings = []*v1alpha1.Machine{controlPlane(at(0)), controlPlane(nil)}
		},
		does: "DrainingNode, record",
	},
	"no control-plane Machine is left, but the control plane is externally managed": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Cluster.Object.Status.ControlPlaneMachinesSeen = true
			s.Cluster.Object.Spec.ControlPlane.ExternallyManaged = true
		},
		does: "DrainingNode, record",
	},
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
	"If the Node doesn't exist anymore, Node drain is entirely skipped": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			s.Nodes = nil
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			attach(s)
		},
		does: "WaitingForInfrastructureDeletion, record",
		says: map[string]string{
			drainingCondition: "False/Skipped",
			volumesCondition:  "False/Skipped",
		},
		events: []string{"DrainSkipped", "VolumeDetachSkipped", "NotFound"},
	},
	"the Node doesn't exist anymore, pre-drain hooks hold all the same": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Nodes = nil
			annotate(s, v1alpha1.PreDrainHookAnnotationPrefix)
		},
		does: "WaitingForPreDrainHook, record", events: []string{"HeldByHooks", "NotFound"},
	},
	"a Node of the same name is another one": {
		of: draining, change: func(s *lifecycle.Snapshot) { s.Nodes[0].UID, s.Nodes[0].Spec.ProviderID = "other", "docker://other" },
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainingCondition: "False/Skipped"},
		events: []string{"DrainSkipped", "VolumeDetachSkipped", "NotFound"},
	},
	"a Node of the same name may be the Machine's": {
		of: draining, change: func(s *lifecycle.Snapshot) { s.Nodes[0].UID, s.Nodes[0].Spec.ProviderID = "other", "" },
		does:   "DrainingNode",
		says:   map[string]string{drainedCondition: "False/DrainError"},
		events: []string{"Unknown", "DrainError"},
	},
	"the Machine's Node has registered again": {
		of: draining, change: func(s *lifecycle.Snapshot) { s.Nodes[0].UID = "other" },
		does: "Recording, record",
	},
	"If the Node is unreachable: Pods with deletionTimestamp more than 1s in the past are ignored": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			unreachable(s)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			s.Drain.Pods[0].DeletionTimestamp, s.Now = at(0), after(2)
			attach(s)
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{drainedCondition: "True/Drained"},
		events: []string{"DrainStarted", "DrainCompleted", "VolumeDetachSkipped"},
	},
	"a Pod whose deletionTimestamp is not that long ago is waited for, and looked at when it is": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			unreachable(s)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			s.Drain.Pods[0].DeletionTimestamp = at(0)
		},
		does: "DrainingNode, drain, look again in 1.001s", events: []string{"DrainStarted"},
	},
	"the limit of the drain is over before that": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			unreachable(s)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			s.Drain.Pods[0].DeletionTimestamp = at(60)
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(30))
		},
		does: "DrainingNode, drain, look again in 30s", events: []string{"DrainStarted"},
	},
	"PodDisruptionBudgets are still respected": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			unreachable(s)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
		},
		does: "DrainingNode, evict app/a", events: []string{"DrainStarted"},
	},
	"volumes of an unreachable Node are not waited for": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			unreachable(s)
			attach(s)
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{volumesCondition: "False/Skipped"},
		events: []string{"VolumeDetachSkipped"},
	},
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

// having is a Machine that has a Node.
func having(name string, node types.UID) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: "node-1", UID: node}
	return m
}
