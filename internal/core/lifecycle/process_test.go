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

	triedAgain = "\n* Evictions that failed are tried again: as soon as their budget allows them or its lock ends, all others at least once a minute"
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
		says: map[string]string{deletingCondition: "True/DrainingNode: Draining Node node-1 since 2026-11-21T08:00:00Z: No pod has to leave, but the Node has to be cordoned."},
	},
	"2. Machine controller waits until all pre-drain hooks succeeded, if any are registered": {
		of: deleted, change: func(s *lifecycle.Snapshot) {
			s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
			s.Machine.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{{Name: "MigrateImportantApp", Owner: "my-app-migration-controller"}}
		},
		does: "WaitingForPreDrainHook",
		says: map[string]string{
			deletingCondition:                "True/WaitingForPreDrainHook: Waiting for pre-drain hooks since 2026-11-21T08:00:00Z: MigrateImportantApp (owner my-app-migration-controller)",
			v1alpha1.ConditionDrainable:      "False/HookPresent: Held by pre-drain hooks: MigrateImportantApp (owner my-app-migration-controller)",
			drainedCondition:                 "",
			v1alpha1.ConditionTerminable:     "True/NoHooks: There are no pre-terminate hooks.",
			v1alpha1.ConditionNodeReady:      "True/Ready: Node node-1.",
			v1alpha1.ConditionCreatable:      "True/NoHooks: There are no preCreate hooks.",
			v1alpha1.ConditionPaused:         "",
			v1alpha1.ConditionBlocked:        "",
			drainingCondition:                "",
			volumesCondition:                 "",
			infraCondition:                   "True/Ready: DockerMachine prod/worker-1 is ready.",
			v1alpha1.ConditionBootstrapReady: "True/Ready: KubeadmConfig prod/worker-1 is ready.",
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
		does: "WaitingForPreDrainHook",
		says: map[string]string{deletingCondition: "True/WaitingForPreDrainHook: Waiting for pre-drain hooks since 2026-11-21T08:00:00Z: " +
			"annotation pre-drain.delete.hook.machine.cluster.x-k8s.io.other (owner not given), annotation pre-drain.delete.hook.machine.cluster.x-k8s.io/migrate (owner app-operator)"},
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
			drainedCondition:  "True/Skipped: The Node is not drained: Annotation machine.cluster.x-k8s.io/exclude-node-draining is set.",
			drainingCondition: "False/Skipped: The Node is not drained: Annotation machine.cluster.x-k8s.io/exclude-node-draining is set.",
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
			drainingCondition: "False/TimedOut: The drain of Node node-1 was given up after 10m0s (nodeDrainTimeoutSeconds). What is left goes with the Machine, and nobody waits for its volumes. " +
				"Drain not completed yet:\n* Pods with eviction requested: app/a",
		},
		events: []string{"DrainTimedOut"},
	},
	"3. nodeDrainTimeout has not expired yet": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
			s.Now, s.Drain.Pods = after(599), []*corev1.Pod{pod("a")}
		},
		does: "DrainingNode, evict app/a, look again in 1s",
		says: map[string]string{deletingCondition: "True/DrainingNode: Draining Node node-1 since 2026-11-21T08:00:00Z, until 2026-11-21T08:10:00Z at the longest: " +
			"Drain not completed yet:\n* Pods with eviction requested: app/a"},
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
			drainingCondition: "False/Skipped: The Node is not drained: The KubeadmControlPlane has taken it out of the control plane: its pre-terminate hook is gone.",
			volumesCondition:  "False/Skipped: Volumes are not waited for: The KubeadmControlPlane has taken the Node out of the control plane: its pre-terminate hook is gone.",
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
		says:   map[string]string{drainedCondition: "False/Draining: Drain not completed yet:\n* Pods with eviction requested: app/a, app/b"},
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
			drainedCondition:  "True/Drained: Node node-1 is drained.",
			drainingCondition: "True/Drained: Node node-1 is drained.",
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
		says:   map[string]string{drainingCondition: "False/Draining: Drain not completed yet:\n* Pods that are waited for to complete by themselves: app/job"},
		events: []string{"DrainStarted"},
	},
	"the Pod also has to be terminated and the Pod object has to go away for the drain to complete": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			leaving := pod("a")
			leaving.DeletionTimestamp = at(0)
			s.Drain.Pods = []*corev1.Pod{leaving}
		},
		does:   "DrainingNode, drain",
		says:   map[string]string{drainingCondition: "False/Draining: Drain not completed yet:\n* Pods with deletionTimestamp that still exist: app/a"},
		events: []string{"DrainStarted"},
	},
	"The eviction would violate a PodDisruptionBudget": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			refuse(s, evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Message: "Cannot evict pod as it would violate the pod's disruption budget."})
		},
		does: "DrainingNode, evict app/a",
		says: map[string]string{
			drainedCondition:  "False/Draining: Drain not completed yet:\n* Pods with eviction failed:\n  * Cannot evict pod as it would violate the pod's disruption budget.: app/a" + triedAgain,
			drainingCondition: "False/Draining: Drain not completed yet:\n* Pods with eviction failed:\n  * Cannot evict pod as it would violate the pod's disruption budget.: app/a" + triedAgain,
		},
		events: []string{"DrainStarted"},
	},
	"Other errors, e.g. a connection issue when calling the eviction API of the workload cluster": {
		of: draining, change: func(s *lifecycle.Snapshot) {
			refuse(s, evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerEvictionError, Message: "connection refused"})
		},
		does: "DrainingNode, evict app/a",
		says: map[string]string{
			drainedCondition:  "False/DrainError: Drain not completed yet:\n* Pods with eviction failed:\n  * connection refused: app/a" + triedAgain,
			drainingCondition: "False/Draining: Drain not completed yet:\n* Pods with eviction failed:\n  * connection refused: app/a" + triedAgain,
		},
		events: []string{"DrainStarted", "DrainError"},
	},
	"5. volume wait is skipped if the Machine has the machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach annotation": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			attach(s)
			annotate(s, v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
		},
		does:   "WaitingForInfrastructureDeletion, record",
		says:   map[string]string{volumesCondition: "False/Skipped: Volumes are not waited for: Annotation machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach is set."},
		events: []string{"VolumeDetachSkipped"},
	},
	"5. volume wait is skipped if nodeVolumeDetachTimeout is set and already expired": {
		of: detaching, change: func(s *lifecycle.Snapshot) {
			attach(s)
			s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = new(int32(60))
			s.Now = after(60)
		},
		does: "WaitingForInfrastructureDeletion, record",
		says: map[string]string{volumesCondition: "False/TimedOut: Waiting for the volumes of Node node-1 was given up after 1m0s (nodeVolumeDetachTimeoutSeconds). " +
			"Volumes are still attached to the Node:\n* Attachments without a PersistentVolume: csi-1"},
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
