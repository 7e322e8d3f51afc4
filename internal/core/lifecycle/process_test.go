package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	drainingCondition = v1alpha1.ConditionDrainingSucceeded
	volumesCondition  = v1alpha1.ConditionVolumeDetachSucceeded
	deletingCondition = v1alpha1.ConditionDeleting
)

// TestProcess holds the decision to every sentence of the ten phases of the
// deletion-process page, in its words.
func TestProcess(t *testing.T) {
	t.Parallel()
	run(t, phases)
}

var phases = map[string]story{
	"1. Machine deletion is triggered (i.e. the metadata.deletionTimestamp is set)": {deleted, nil, "DrainingNode, record", "Deleting=True/DrainingNode", ""},
	"2. Machine controller waits until all pre-drain hooks succeeded, if any are registered": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
		s.Machine.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{{Name: "MigrateImportantApp", Owner: "my-app-migration-controller"}}
	}, "WaitingForPreDrainHook", "Blocked=absent BootstrapReady=True/Ready Creatable=True/NoHooks Deleting=True/WaitingForPreDrainHook Drainable=False/HookPresent Drained=absent DrainingSucceeded=absent InfrastructureReady=True/Ready NodeReady=True/Ready Paused=absent Terminable=True/NoHooks VolumeDetachSucceeded=absent", "HeldByHooks"},
	"2. Pre-drain hooks can be registered by adding annotations with the pre-drain.delete.hook.machine.cluster.x-k8s.io prefix": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
		s.Machine.Annotations = map[string]string{
			v1alpha1.PreDrainHookAnnotationPrefix + "/migrate": "app-operator",
			v1alpha1.PreDrainHookAnnotationPrefix + ".other":   "",
		}
	}, "WaitingForPreDrainHook", "Deleting=True/WaitingForPreDrainHook", "HeldByHooks"},
	"3. drain is skipped if the Machine has the machine.cluster.x-k8s.io/exclude-node-draining annotation": {deleted, func(s *lifecycle.Snapshot) {
		annotate(s, v1alpha1.ExcludeNodeDrainingAnnotation)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		attach(s)
	}, "WaitingForVolumeDetach, record", "Drained=True/Skipped DrainingSucceeded=False/Skipped", "DrainSkipped"},
	"3. drain is skipped if nodeDrainTimeout is set and already expired": {draining, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
		s.Now, s.Drain.Pods = after(600), []*corev1.Pod{pod("a")}
		attach(s)
	}, "WaitingForVolumeDetach, record", "DrainingSucceeded=False/TimedOut", "DrainTimedOut"},
	"3. nodeDrainTimeout has not expired yet": {draining, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
		s.Now, s.Drain.Pods = after(599), []*corev1.Pod{pod("a")}
	}, "DrainingNode, evict app/a, look again in 1s", "Deleting=True/DrainingNode", "DrainStarted"},
	"3. unset nodeDrainTimeout means no timeout": {draining, func(s *lifecycle.Snapshot) { s.Now, s.Drain.Pods = after(1e8), []*corev1.Pod{pod("a")} }, "DrainingNode, evict app/a", "", "DrainStarted"},
	"3. nodeDrainTimeout 0 means no timeout": {draining, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(0))
		s.Now, s.Drain.Pods = after(1e8), []*corev1.Pod{pod("a")}
	}, "DrainingNode, evict app/a", "", "DrainStarted"},
	"3. drain is skipped if the Machine is owned by a KubeadmControlPlane and the pre-terminate hook has been already removed": {deleted, func(s *lifecycle.Snapshot) {
		ownedByKubeadm(s)
		s.Machine.Status.ControlPlaneHookSeen = true
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		attach(s)
	}, "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped VolumeDetachSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
	"3. the pre-terminate hook of the KubeadmControlPlane has not been removed": {deleted, func(s *lifecycle.Snapshot) {
		ownedByKubeadm(s)
		s.Machine.Status.ControlPlaneHookSeen = true
		annotate(s, v1alpha1.ControlPlaneHookAnnotation)
	}, "DrainingNode, record", "", ""},
	"3. the pre-terminate hook of the KubeadmControlPlane was never there":       {deleted, ownedByKubeadm, "DrainingNode, record", "", ""},
	"3. a Machine that is not owned by a KubeadmControlPlane has lost that hook": {deleted, func(s *lifecycle.Snapshot) { s.Machine.Status.ControlPlaneHookSeen = true }, "DrainingNode, record", "", ""},
	"3. a Machine that is owned by a KubeadmControlPlane of somebody else has lost that hook": {deleted, func(s *lifecycle.Snapshot) {
		ownedByKubeadm(s)
		s.Machine.OwnerReferences[0].APIVersion = "example.com/v1beta2"
		s.Machine.Status.ControlPlaneHookSeen = true
	}, "DrainingNode, record", "", ""},
	"4. If the Machine should be drained, the Machine controller evicts all relevant Pods from the Node": {draining, func(s *lifecycle.Snapshot) {
		static := pod("static")
		podclass.MakeMirror(static, "node")
		s.Drain.Pods = []*corev1.Pod{pod("a"), pod("b"), static}
	}, "DrainingNode, evict app/a, app/b", "Drained=False/Draining", "DrainStarted"},
	"Node is cordoned": {draining, func(s *lifecycle.Snapshot) {
		s.Nodes[0].Spec.Unschedulable = false
		s.Drain.Pods = []*corev1.Pod{pod("a")}
	}, "DrainingNode, cordon, evict app/a", "", "DrainStarted"},
	"Node is cordoned also if it is empty, before the drain is believed to be complete": {draining, func(s *lifecycle.Snapshot) { s.Nodes[0].Spec.Unschedulable = false }, "DrainingNode, cordon, drain", "", "DrainStarted"},
	"If there are no more Pods that have to be drained Node drain is completed":         {draining, nil, "WaitingForInfrastructureDeletion, record", "Drained=True/Drained DrainingSucceeded=True/Drained", "DrainStarted DrainCompleted VolumesDetached"},
	"Otherwise we have to wait for Pods to complete": {draining, func(s *lifecycle.Snapshot) {
		job := pod("job")
		job.Labels = map[string]string{v1alpha1.DrainLabel: "wait-completed"}
		s.Drain.Pods = []*corev1.Pod{job}
	}, "DrainingNode, drain", "DrainingSucceeded=False/Draining", "DrainStarted"},
	"the Pod also has to be terminated and the Pod object has to go away for the drain to complete": {draining, func(s *lifecycle.Snapshot) {
		leaving := pod("a")
		leaving.DeletionTimestamp = at(0)
		s.Drain.Pods = []*corev1.Pod{leaving}
	}, "DrainingNode, drain", "DrainingSucceeded=False/Draining", "DrainStarted"},
	"The eviction would violate a PodDisruptionBudget": {draining, func(s *lifecycle.Snapshot) {
		refuse(s, evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Message: "Cannot evict pod as it would violate the pod's disruption budget."})
	}, "DrainingNode, evict app/a", "Drained=False/Draining DrainingSucceeded=False/Draining", "DrainStarted"},
	"Other errors, e.g. a connection issue when calling the eviction API of the workload cluster": {draining, func(s *lifecycle.Snapshot) {
		refuse(s, evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerEvictionError, Message: "connection refused"})
	}, "DrainingNode, evict app/a", "Drained=False/DrainError DrainingSucceeded=False/Draining", "DrainStarted DrainError"},
	"5. volume wait is skipped if the Machine has the machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach annotation": {detaching, func(s *lifecycle.Snapshot) {
		attach(s)
		annotate(s, v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
	}, "WaitingForInfrastructureDeletion, record", "VolumeDetachSucceeded=False/Skipped", "VolumeDetachSkipped"},
	"5. volume wait is skipped if nodeVolumeDetachTimeout is set and already expired": {detaching, func(s *lifecycle.Snapshot) {
		attach(s)
		s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = new(int32(60))
		s.Now = after(60)
	}, "WaitingForInfrastructureDeletion, record", "VolumeDetachSucceeded=False/TimedOut", "VolumeDetachTimedOut"},
	"5. nodeVolumeDetachTimeout counts from the start of its own step": {draining, func(s *lifecycle.Snapshot) {
		attach(s)
		s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = new(int32(60))
		s.Machine.Status.Deletion.WaitForNodeVolumeDetachStartTime = at(1000)
		s.Now = after(1059)
	}, "WaitingForVolumeDetach, look again in 1s", "", "VolumesAttached"},
	"5. unset nodeVolumeDetachTimeout means no timeout": {detaching, func(s *lifecycle.Snapshot) { attach(s); s.Now = after(1e8) }, "WaitingForVolumeDetach", "", "VolumesAttached"},
	"5. nodeVolumeDetachTimeout 0 means no timeout": {detaching, func(s *lifecycle.Snapshot) {
		attach(s)
		s.Now, s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = after(1e8), new(int32(0))
	}, "WaitingForVolumeDetach", "", "VolumesAttached"},
}

func annotate(s *lifecycle.Snapshot, key string) { s.Machine.Annotations = map[string]string{key: ""} }

func attach(s *lifecycle.Snapshot) {
	s.Volumes.Attachments = []*storagev1.VolumeAttachment{{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "node-1"},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}}
}

func ownedByKubeadm(s *lifecycle.Snapshot) {
	s.Machine.OwnerReferences = []metav1.OwnerReference{{APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Name: "east"}}
}

func refuse(s *lifecycle.Snapshot, outcome evacuation.Outcome) {
	s.Drain.Pods = []*corev1.Pod{pod("a")}
	s.Drain.Answers = map[types.UID]evacuation.Outcome{"uid-a": outcome}
}
