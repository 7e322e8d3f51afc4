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
	"6. the Machine controller waits until Node.status.volumesAttached is empty": {detaching, func(s *lifecycle.Snapshot) {
		s.Nodes[0].Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/nfs/share"}}
	}, "WaitingForVolumeDetach", "Deleting=True/WaitingForVolumeDetach VolumeDetachSucceeded=False/WaitingForVolumeDetach", "VolumesAttached"},
	"6. and there are no more VolumeAttachment objects": {detaching, attach, "WaitingForVolumeDetach", "", "VolumesAttached"},
	"6. Typically the volumes are getting detached by CSI after the corresponding Pods have been evicted, which they are not": {detaching, func(s *lifecycle.Snapshot) {
		attach(s)
		annotate(s, v1alpha1.ExcludeNodeDrainingAnnotation)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
	}, "WaitingForVolumeDetach", "VolumeDetachSucceeded=False/WaitingForVolumeDetach", "VolumesAttached"},
	"6. Pods that come after the drain are evicted while volumes are waited for":    {detaching, func(s *lifecycle.Snapshot) { mount(s, pod("late")) }, "WaitingForVolumeDetach, evict app/late", "VolumeDetachSucceeded=False/WaitingForVolumeDetach", "VolumesAttached"},
	"6. Pods that come after the drain go with the Node if no volume is waited for": {detaching, func(s *lifecycle.Snapshot) { s.Drain.Pods = []*corev1.Pod{pod("late")} }, "WaitingForInfrastructureDeletion, record", "", "VolumesDetached"},
	"7. Machine controller waits until all pre-terminate hooks succeeded, if any are registered": {detaching, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreTerminate = []v1alpha1.LifecycleHook{{Name: "WaitForStorageDetach", Owner: "storage"}, {Name: "BackupFileSytem", Owner: "backup"}}
		s.Machine.Status.Deletion.PreTerminateHookWaitStartTime = at(5)
	}, "WaitingForPreTerminateHook", "Deleting=True/WaitingForPreTerminateHook Terminable=False/HookPresent", "HeldByHooks"},
	"7. Pre-terminate hooks can be registered by adding annotations with the pre-terminate.delete.hook.machine.cluster.x-k8s.io prefix": {detaching, func(s *lifecycle.Snapshot) {
		annotate(s, v1alpha1.PreTerminateHookAnnotationPrefix+"-backup")
		s.Machine.Status.Deletion.PreTerminateHookWaitStartTime = at(5)
	}, "WaitingForPreTerminateHook", "", "HeldByHooks"},
	"8. Machine controller deletes the InfrastructureMachine object of the Machine": {terminating, nil, "WaitingForInfrastructureDeletion, delete infrastructure", "Deleting=True/WaitingForInfrastructureDeletion", ""},
	"8. and waits until it is gone": {terminating, func(s *lifecycle.Snapshot) { s.Infrastructure.Object.Deleting = true }, "WaitingForInfrastructureDeletion", "InfrastructureReady=False/NotReady", ""},
	"9. Machine controller deletes the BootstrapConfig object of the machine": {terminating, func(s *lifecycle.Snapshot) {
		s.Infrastructure = lifecycle.Reading[lifecycle.External]{}
		s.Machine.Status.Deletion.BootstrapDeletionStartTime = at(9)
	}, "WaitingForBootstrapDeletion, delete bootstrap", "Deleting=True/WaitingForBootstrapDeletion", "InfrastructureDeleted"},
	"9. and waits until it is gone, too": {terminating, func(s *lifecycle.Snapshot) {
		s.Infrastructure = lifecycle.Reading[lifecycle.External]{}
		s.Machine.Status.Deletion.BootstrapDeletionStartTime = at(9)
		s.Bootstrap.Object.Deleting = true
	}, "WaitingForBootstrapDeletion", "", "InfrastructureDeleted"},
	"9. a Machine without bootstrap config": {terminating, func(s *lifecycle.Snapshot) {
		s.Infrastructure, s.Bootstrap = lifecycle.Reading[lifecycle.External]{}, nil
	}, "DeletingNode, record", "", "InfrastructureDeleted"},
	"10. Machine controller deletes the Node object in the workload cluster": {leaving, nil, "DeletingNode, delete node, look again in 10s", "Deleting=True/DeletingNode", ""},
	"10. Node deletion will be retried until the Node object is gone":        {leaving, func(s *lifecycle.Snapshot) { s.Nodes, s.Now = nil, after(3) }, "DeletionCompleted, drop finalizer", "Deleting=True/DeletionCompleted NodeReady=False/NotFound", "NodeDeleted"},
	"10. the Node is being deleted already":                                  {leaving, func(s *lifecycle.Snapshot) { s.Nodes[0].DeletionTimestamp = at(0) }, "DeletingNode, look again in 10s", "", ""},
	"10. or nodeDeletionTimeout is expired": {leaving, func(s *lifecycle.Snapshot) {
		s.Now, s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds = after(60), new(int32(60))
		s.Nodes[0].DeletionTimestamp = at(0)
	}, "DeletionCompleted, drop finalizer", "Deleting=True/DeletionCompleted NodeReady=False/TimedOut", "NodeLeft"},
	"10. it is tried once when nodeDeletionTimeout expired before that": {leaving, func(s *lifecycle.Snapshot) { s.Now = after(60) }, "DeletingNode, delete node", "", ""},
	"10. nodeDeletionTimeout is expired and the API server refuses":     {leaving, func(s *lifecycle.Snapshot) { s.Now, s.Failure = after(60), "delete node node-1: forbidden" }, "DeletionCompleted, drop finalizer", "", "NodeLeft"},
	"10. 0 means no timeout": {leaving, func(s *lifecycle.Snapshot) {
		s.Now, s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds = after(1e8), new(int32(0))
	}, "DeletingNode, delete node", "", ""},
	"10. but the field defaults to 10s": {leaving, func(s *lifecycle.Snapshot) { s.Now, s.Nodes[0].DeletionTimestamp = after(10), at(0) }, "DeletionCompleted, drop finalizer", "", "NodeLeft"},
	"10. Nodes are usually also deleted by cloud controller managers": {terminating, func(s *lifecycle.Snapshot) {
		s.Infrastructure, s.Bootstrap, s.Nodes = lifecycle.Reading[lifecycle.External]{}, nil, nil
	}, "DeletionCompleted, drop finalizer", "", "InfrastructureDeleted NodeDeleted"},
}
