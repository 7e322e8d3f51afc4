package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// TestCleanUp is the part of the page behind the drain.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	run(t, cleanUp)
}

var cleanUp = map[string]story{
	"6. the Machine controller waits until Node.status.volumesAttached is empty": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			s.Nodes[0].Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/nfs/share"}}
		},
		does: "WaitingForVolumeDetach",
		says: map[string]string{
			volumesCondition:  "False/WaitingForVolumeDetach",
			deletingCondition: "True/WaitingForVolumeDetach",
		},
		events: []string{"VolumesAttached"},
	},
	"6. and there are no more VolumeAttachment objects": {
		of: detaching, change: attach,
		does: "WaitingForVolumeDetach", events: []string{"VolumesAttached"},
	},
	"6. Typically the volumes are getting detached by CSI after the corresponding Pods have been evicted, which they are not": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			attach(s)
			annotate(s, v1alpha1.ExcludeNodeDrainingAnnotation)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
		},
		does:   "WaitingForVolumeDetach",
		says:   map[string]string{volumesCondition: "False/WaitingForVolumeDetach"},
		events: []string{"VolumesAttached"},
	},
	"6. Pods that come after the drain are evicted while volumes are waited for": {
		of: detaching, change: func(s *lifecycle.Snapshot) { mount(s, pod("late")) },
		does: "WaitingForVolumeDetach, evict app/late",
		says: map[string]string{
			volumesCondition: "False/WaitingForVolumeDetach",
		},
		events: []string{"VolumesAttached"},
	},
	"6. Pods that come after the drain go with the Node if no volume is waited for": {
		of: detaching, change: func(s *lifecycle.Snapshot) { s.Drain.Pods = []*corev1.Pod{pod("late")} },
		does: "WaitingForInfrastructureDeletion, record", events: []string{"VolumesDetached"},
	},
	"7. Machine controller waits until all pre-terminate hooks succeeded, if any are registered": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			s.Machine.Spec.LifecycleHooks.PreTerminate = []v1alpha1.LifecycleHook{{Name: "WaitForStorageDetach", Owner: "storage"}, {Name: "BackupFileSytem", Owner: "backup"}}
			s.Machine.Status.Deletion.PreTerminateHookWaitStartTime = at(5)
		},
		does: "WaitingForPreTerminateHook",
		says: map[string]string{
			deletingCondition:            "True/WaitingForPreTerminateHook",
			v1alpha1.ConditionTerminable: "False/HookPresent",
		},
		events: []string{"HeldByHooks"},
	},
	"7. Pre-terminate hooks can be registered by adding annotations with the pre-terminate.delete.hook.machine.cluster.x-k8s.io prefix": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			annotate(s, v1alpha1.PreTerminateHookAnnotationPrefix+"-backup")
			s.Machine.Status.Deletion.PreTerminateHookWaitStartTime = at(5)
		},
		does:   "WaitingForPreTerminateHook",
		events: []string{"HeldByHooks"},
	},
	"8. Machine controller deletes the InfrastructureMachine object of the Machine": {
		of: terminating, does: "WaitingForInfrastructureDeletion, delete infrastructure",
		says: map[string]string{deletingCondition: "True/WaitingForInfrastructureDeletion"},
	},
	"8. and waits until it is gone": {
		of: terminating, change: func(s *lifecycle.Snapshot) { s.Infrastructure.Object.Deleting = true },
		does: "WaitingForInfrastructureDeletion",
		says: map[string]string{infraCondition: "False/NotReady"},
	},
	"9. Machine controller deletes the BootstrapConfig object of the machine": {
		of: terminating, change: func(s *lifecycle.Snapshot) {
			s.Infrastructure = lifecycle.Reading[lifecycle.External]{}
			s.Machine.Status.Deletion.BootstrapDeletionStartTime = at(9)
		},
		does:   "WaitingForBootstrapDeletion, delete bootstrap",
		says:   map[string]string{deletingCondition: "True/WaitingForBootstrapDeletion"},
		events: []string{"InfrastructureDeleted"},
	},
	"9. and waits until it is gone, too": {
		of: terminating, change: func(s *lifecycle.Snapshot) {
			s.Infrastructure = lifecycle.Reading[lifecycle.External]{}
			s.Machine.Status.Deletion.BootstrapDeletionStartTime = at(9)
			s.Bootstrap.Object.Deleting = true
		},
		does: "WaitingForBootstrapDeletion", events: []string{"InfrastructureDeleted"},
	},
	"9. a Machine without bootstrap config": {
		of: terminating, change: func(s *lifecycle.Snapshot) {
			s.Infrastructure, s.Bootstrap = lifecycle.Reading[lifecycle.External]{}, nil
		},
		does: "DeletingNode, record", events: []string{"InfrastructureDeleted"},
	},
	"10. Machine controller deletes the Node object in the workload cluster": {
		of: leaving, does: "DeletingNode, delete node, look again in 10s",
		says: map[string]string{deletingCondition: "True/DeletingNode"},
	},
	"10. Node deletion will be retried until the Node object is gone": {
		of: leaving, change: func(s *lifecycle.Snapshot) { s.Nodes, s.Now = nil, after(3) },
		does:   "DeletionCompleted, drop finalizer",
		says:   map[string]string{deletingCondition: "True/DeletionCompleted", nodeCondition: "False/NotFound"},
		events: []string{"NodeDeleted"},
	},
	"10. the Node is being deleted already": {
		of: leaving, change: func(s *lifecycle.Snapshot) { s.Nodes[0].DeletionTimestamp = at(0) },
		does: "DeletingNode, look again in 10s",
	},
	"10. or nodeDeletionTimeout is expired": {
		of: leaving, change: func(s *lifecycle.Snapshot) {
			s.Now, s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds = after(60), new(int32(60))
			s.Nodes[0].DeletionTimestamp = at(0)
		},
		does: "DeletionCompleted, drop finalizer",
		says: map[string]string{
			nodeCondition:     "False/TimedOut",
			deletingCondition: "True/DeletionCompleted",
		},
		events: []string{"NodeLeft"},
	},
	"10. it is tried once when nodeDeletionTimeout expired before that": {
		of: leaving, change: func(s *lifecycle.Snapshot) { s.Now = after(60) },
		does: "DeletingNode, delete node",
	},
	"10. nodeDeletionTimeout is expired and the API server refuses": {
		of: leaving, change: func(s *lifecycle.Snapshot) { s.Now, s.Failure = after(60), "delete node node-1: forbidden" },
		does: "DeletionCompleted, drop finalizer", events: []string{"NodeLeft"},
	},
	"10. 0 means no timeout": {
		of: leaving, change: func(s *lifecycle.Snapshot) {
			s.Now, s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds = after(1e8), new(int32(0))
		},
		does: "DeletingNode, delete node",
	},
	"10. but the field defaults to 10s": {
		of: leaving, change: func(s *lifecycle.Snapshot) { s.Now, s.Nodes[0].DeletionTimestamp = after(10), at(0) },
		does: "DeletionCompleted, drop finalizer", events: []string{"NodeLeft"},
	},
	"10. Nodes are usually also deleted by cloud controller managers": {
		of: terminating, change: func(s *lifecycle.Snapshot) {
			s.Infrastructure, s.Bootstrap, s.Nodes = lifecycle.Reading[lifecycle.External]{}, nil, nil
		},
		does: "DeletionCompleted, drop finalizer", events: []string{"InfrastructureDeleted", "NodeDeleted"},
	},
}
