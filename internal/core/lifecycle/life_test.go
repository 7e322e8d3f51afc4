package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// TestLife tells one deletion from the first record to the last finalizer: a hook
// holds it, pods leave, a volume is detached, everything is cleaned up.
func TestLife(t *testing.T) {
	t.Parallel()
	s := deleted()
	s.Machine.Status.Deletion = nil
	s.Machine.Spec.LifecycleHooks.PreDrain = hook("MigrateImportantApp")
	s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
	mount(&s, pod("a"))
	trace := tell(t, &s)
	s.Machine.Spec.LifecycleHooks.PreDrain = nil
	trace += tell(t, &s)
	s.Nodes[0].Spec.Unschedulable, s.Drain.Pods = true, nil
	trace += tell(t, &s)
	s.Volumes.Attachments = nil
	trace += tell(t, &s)
	s.Infrastructure.Object.Deleting = true
	trace += tell(t, &s)
	s.Infrastructure = nothing()
	trace += tell(t, &s)
	s.Bootstrap = new(nothing())
	trace += tell(t, &s)
	s.Nodes = []*corev1.Node{}
	trace += tell(t, &s)
	if diff := cmp.Diff(strings.TrimPrefix(life, "\n"), trace); diff != "" {
		t.Errorf("life (-want +got):\n%s", diff)
	}
}

// tell lets time pass and writes down what is done and said until the Machine waits.
func tell(t *testing.T, s *lifecycle.Snapshot) (trace string) {
	t.Helper()
	for range 5 {
		d := lifecycle.Decide(*s)
		trace += fmt.Sprintf("%s %s\n  %s\n", s.Now.Format("15:04:05"), does(d), told(d.Status, v1alpha1.ConditionDeleting))
		for _, e := range d.Events {
			trace += fmt.Sprintf("  Event %s %s: %s\n", e.Type, e.Reason, e.Message)
		}
		s.Machine.Status = stored(t, d.Status)
		s.Now = s.Now.Add(time.Second)
		if !d.Record {
			return trace
		}
	}
	t.Fatalf("too many records:\n%s", trace)
	return ""
}

const life = `
08:00:00 WaitingForPreDrainHook, record
  True/WaitingForPreDrainHook: Waiting for pre-drain hooks since 2026-11-21T08:00:00Z: MigrateImportantApp (owner my-controller)
  Event Normal HeldByHooks: Waiting for pre-drain hooks since 2026-11-21T08:00:00Z: MigrateImportantApp (owner my-controller)
08:00:01 WaitingForPreDrainHook
  True/WaitingForPreDrainHook: Waiting for pre-drain hooks since 2026-11-21T08:00:00Z: MigrateImportantApp (owner my-controller)
08:00:02 DrainingNode, record
  True/DrainingNode: Draining Node node-1 since 2026-11-21T08:00:02Z, until 2026-11-21T08:10:02Z at the longest: Drain not completed yet:
* Pods with eviction requested: app/a
08:00:03 DrainingNode, cordon, evict app/a, look again in 9m59s
  True/DrainingNode: Draining Node node-1 since 2026-11-21T08:00:02Z, until 2026-11-21T08:10:02Z at the longest: Drain not completed yet:
* Pods with eviction requested: app/a
  Event Normal DrainStarted: Draining Node node-1.
08:00:04 WaitingForVolumeDetach, record
  True/WaitingForVolumeDetach: Waiting for the volumes of Node node-1 since 2026-11-21T08:00:04Z: Volumes are still attached to the Node:
* PersistentVolumeClaims: app/a
  Event Normal DrainCompleted: Node node-1 is drained.
08:00:05 WaitingForVolumeDetach
  True/WaitingForVolumeDetach: Waiting for the volumes of Node node-1 since 2026-11-21T08:00:04Z: Volumes are still attached to the Node:
* PersistentVolumeClaims: app/a
  Event Normal VolumesAttached: Volumes are still attached to the Node:
* PersistentVolumeClaims: app/a
08:00:06 WaitingForInfrastructureDeletion, record
  True/WaitingForInfrastructureDeletion: Deleting DockerMachine prod/worker-1 since 2026-11-21T08:00:06Z.
  Event Normal VolumesDetached: No volume is attached to Node node-1 that matters.
08:00:07 WaitingForInfrastructureDeletion, delete infrastructure
  True/WaitingForInfrastructureDeletion: Deleting DockerMachine prod/worker-1 since 2026-11-21T08:00:06Z.
08:00:08 WaitingForInfrastructureDeletion
  True/WaitingForInfrastructureDeletion: Deleting DockerMachine prod/worker-1 since 2026-11-21T08:00:06Z.
08:00:09 WaitingForBootstrapDeletion, record
  True/WaitingForBootstrapDeletion: Deleting KubeadmConfig prod/worker-1 since 2026-11-21T08:00:09Z.
  Event Normal InfrastructureDeleted: DockerMachine prod/worker-1 does not exist.
08:00:10 WaitingForBootstrapDeletion, delete bootstrap
  True/WaitingForBootstrapDeletion: Deleting KubeadmConfig prod/worker-1 since 2026-11-21T08:00:09Z.
08:00:11 DeletingNode, record
  True/DeletingNode: Deleting Node node-1 since 2026-11-21T08:00:11Z, until 2026-11-21T08:00:21Z at the longest.
  Event Normal BootstrapDeleted: KubeadmConfig prod/worker-1 does not exist.
08:00:12 DeletingNode, delete node, look again in 9s
  True/DeletingNode: Deleting Node node-1 since 2026-11-21T08:00:11Z, until 2026-11-21T08:00:21Z at the longest.
08:00:13 DeletionCompleted, drop finalizer
  True/DeletionCompleted: Everything is gone.
  Event Normal NodeDeleted: Node node-1, which the Machine had, does not exist any more.
`
