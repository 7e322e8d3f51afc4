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
	drainedCondition  = v1alpha1.ConditionMachineDrained
	drainingCondition = v1alpha1.ConditionDrainingSucceeded
	volumesCondition  = v1alpha1.ConditionVolumeDetachSucceeded
	deletingCondition = v1alpha1.ConditionDeleting
	infraCondition    = v1alpha1.ConditionInfrastructureReady
	nodeCondition     = v1alpha1.ConditionNodeReady
)

// TestProcess holds the decision to every sentence of the ten phases of the
// deletion-process page, in its words.
func TestProcess(t *testing.T) {
	t.Parallel()
	run(t, phases)
}

var phases = map[string]story{
	"1. Machine deletion is triggered (i.e. the metadata.deletionTimestamp is set)": {
		of:   deleted,
		does: "DrainingNode, record",
		says: map[string]string{deletingCondition: "True/DrainingNode"},
	},
	"2. Machine controller waits until all pre-drain hooks succeeded, if any are registered": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
			s.Machine.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{{Name: "MigrateImportantApp", Owner: "my-app-migration-controller"}}
		},
		does: "WaitingForPreDrainHook",
		says: map[string]string{
			deletingCondition:                "True/WaitingForPreDrainHook",
			v1alpha1.ConditionDrainable:      "False/HookPresent",
			drainedCondition:                 "",
			v1alpha1.ConditionTerminable:     "True/NoHooks",
			v1alpha1.ConditionNodeReady:      "True/Ready",
			v1alpha1.ConditionCreatable:      "True/NoHooks",
			v1alpha1.ConditionPaused:         "",
			v1alpha1.ConditionBlocked:        "",
			drainingCondition:                "",
			volumesCondition:                 "",
			infraCondition:                   "True/Ready",
			v1alpha1.ConditionBootstrapReady: "True/Ready",
		},
		events: []string{"HeldByHooks"},
	},
	"2. Pre-drain hooks can be registered by adding annotations with the pre-drain.delete.hook.machine.cluster.x-k8s.io prefix": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
			s.Machine.Annotations = map[string]string{
				v1alpha1.PreDrainHookAnnotationPrefix + "/migrate": "app-operator",
				v1alpha1.PreDrainHookAnnotationPrefix + ".other":   "",
			}
		},
		does:   "WaitingForPreDrainHook",
		says:   map[string]string{deletingCondition: "True/WaitingForPreDrainHook"},
		events: []string{"HeldByHooks"},
	},
	"3. drain is skipped if the Machine has the machine.cluster.x-k8s.io/exclude-node-draining annotation": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			annotate(s, v1alpha1.ExcludeNodeDrainingAnnotation)
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			attach(s)
		},
		does: "WaitingForVolumeDetach, record",
		says: map[string]string{
			drainedCondition:  "True/Skipped",
			drainingCondition: "False/Skipped",
		},
		events: []string{"DrainSkipped"},
	},
	"3. drain is skipped if nodeDrainTimeout is set and already expired": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
			s.Now, s.Drain.Pods = after(600), []*corev1.Pod{pod("a")}
			attach(s)
		},
		does: "WaitingForVolumeDetach, record",
		says: map[string]string{
			drainingCondition: "False/TimedOut",
		},
		events: []string{"DrainTimedOut"},
	},
	"3. nodeDrainTimeout has not expired yet": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
			s.Now, s.Drain.Pods = after(599), []*corev1.Pod{pod("a")}
		},
		does:   "DrainingNode, evict app/a, look again in 1s",
		says:   map[string]string{deletingCondition: "True/DrainingNode"},
		events: []string{"DrainStarted"},
	},
	"3. unset nodeDrainTimeout means no timeout": {
		of: draining, change: func(s *lifecycle.Snapshot) { s.Now, s.Drain.Pods = after(1e8), []*corev1.Pod{pod("a")} },
		does: "DrainingNode, evict app/a", events: []string{"DrainStarted"},
	},
	"3. nodeDrainTimeout 0 means no timeout": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(0))
			s.Now, s.Drain.Pods = after(1e8), []*corev1.Pod{pod("a")}
		},
		does: "DrainingNode, evict app/a", events: []string{"DrainStarted"},
	},
	"3. drain is skipped if the Machine is owned by a KubeadmControlPlane and the pre-terminate hook has been already removed": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			ownedByKubeadm(s)
			s.Machine.Status.ControlPlaneHookSeen = true
			s.Drain.Pods = []*corev1.Pod{pod("a")}
			attach(s)
		},
		does: "WaitingForInfrastructureDeletion, record",
		says: map[string]string{
			drainingCondition: "False/Skipped",
			volumesCondition:  "False/Skipped",
		},
		events: []string{"DrainSkipped", "VolumeDetachSkipped"},
	},
	"3. the pre-terminate hook of the KubeadmControlPlane has not been removed": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			ownedByKubeadm(s)
			s.Machine.Status.ControlPlaneHookSeen = true
			annotate(s, v1alpha1.ControlPlaneHookAnnotation)
		},
		does: "DrainingNode, record",
	},
	"3. the pre-terminate hook of the KubeadmControlPlane was never there": {
		of: deleted, change: ownedByKubeadm,
		does: "DrainingNode, record",
	},
	"3. a Machine that is not owned by a KubeadmControlPlane has lost that hook": {
		of: deleted, change: func(s *lifecycle.Snapshot) { s.Machine.Status.ControlPlaneHookSeen = true },
		does: "DrainingNode, record",
	},
	"3. a Machine that is owned by a KubeadmControlPlane of somebody else has lost that hook": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			ownedByKubeadm(s)
			s.Machine.OwnerReferences[0].APIVersion = "example.com/v1beta2"
			s.Machine.Status.ControlPlaneHookSeen = true
		},
		does: "DrainingNode, record",
	},
	"4. If the Machine should be drained, the Machine controller evicts all relevant Pods from the Node": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			static := pod("static")
			podclass.MakeMirror(static, "node")
			s.Drain.Pods = []*corev1.Pod{pod("a"), pod("b"), static}
		},
		does:   "DrainingNode, evict app/a, app/b",
		says:   map[string]string{drainedCondition: "False/Draining"},
		events: []string{"DrainStarted"},
	},
	"Node is cordoned": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			s.Nodes[0].Spec.Unschedulable = false
			s.Drain.Pods = []*corev1.Pod{pod("a")}
		},
		does: "DrainingNode, cordon, evict app/a", events: []string{"DrainStarted"},
	},
	"Node is cordoned also if it is empty, before the drain is believed to be complete": {
		of: draining, change: func(s *lifecycle.Snapshot) { s.Nodes[0].Spec.Unschedulable = false },
		does: "DrainingNode, cordon, drain", events: []string{"DrainStarted"},
	},
	"If there are no more Pods that have to be drained Node drain is completed": {
		of: draining, does: "WaitingForInfrastructureDeletion, record",
		says: map[string]string{
			drainedCondition:  "True/Drained",
			drainingCondition: "True/Drained",
		},
		events: []string{"DrainStarted", "DrainCompleted", "VolumesDetached"},
	},
	"Otherwise we have to wait for Pods to complete": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			job := pod("job")
			job.Labels = map[string]string{v1alpha1.DrainLabel: "wait-completed"}
			s.Drain.Pods = []*corev1.Pod{job}
		},
		does:   "DrainingNode, drain",
		says:   map[string]string{drainingCondition: "False/Draining"},
		events: []string{"DrainStarted"},
	},
	"the Pod also has to be terminated and the Pod object has to go away for the drain to complete": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			leaving := pod("a")
			leaving.DeletionTimestamp = at(0)
			s.Drain.Pods = []*corev1.Pod{leaving}
		},
		does:   "DrainingNode, drain",
		says:   map[string]string{drainingCondition: "False/Draining"},
		events: []string{"DrainStarted"},
	},
	"The eviction would violate a PodDisruptionBudget": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			refuse(s, evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Message: "Cannot evict pod as it would violate the pod's disruption budget."})
		},
		does: "DrainingNode, evict app/a",
		says: map[string]string{
			drainedCondition:  "False/Draining",
			drainingCondition: "False/Draining",
		},
		events: []string{"DrainStarted"},
	},
	"Other errors, e.g. a connection issue when calling the eviction API of the workload cluster": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			refuse(s, evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerEvictionError, Message: "connection refused"})
		},
		does: "DrainingNode, evict app/a",
		says: map[string]string{
			drainedCondition:  "False/DrainError",
			drainingCondition: "False/Draining",
		},
		events: []string{"DrainStarted", "DrainError"},
	},
	"5. volume wait is skipped if the Machine has the machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach annotation": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			attach(s)
			annotate(s, v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{volumesCondition: "False/Skipped"},
		events: []string{"VolumeDetachSkipped"},
	},
	"5. volume wait is skipped if nodeVolumeDetachTimeout is set and already expired": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			attach(s)
			s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = new(int32(60))
			s.Now = after(60)
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{volumesCondition: "False/TimedOut"},
		events: []string{"VolumeDetachTimedOut"},
	},
	"5. nodeVolumeDetachTimeout counts from the start of its own step": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			attach(s)
			s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = new(int32(60))
			s.Machine.Status.Deletion.WaitForNodeVolumeDetachStartTime = at(1000)
			s.Now = after(1059)
		},
		does: "WaitingForVolumeDetach, look again in 1s", events: []string{"VolumesAttached"},
	},
	"5. unset nodeVolumeDetachTimeout means no timeout": {
		of: detaching, change: func(s *lifecycle.Snapshot) { attach(s); s.Now = after(1e8) },
		does: "WaitingForVolumeDetach", events: []string{"VolumesAttached"},
	},
	"5. nodeVolumeDetachTimeout 0 means no timeout": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			attach(s)
			s.Now, s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = after(1e8), new(int32(0))
		},
		does: "WaitingForVolumeDetach", events: []string{"VolumesAttached"},
	},
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
