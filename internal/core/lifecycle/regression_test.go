package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

func nothing() lifecycle.Reading[lifecycle.External] { return lifecycle.Reading[lifecycle.External]{} }

func unread(why string) lifecycle.Reading[lifecycle.External] {
	return lifecycle.Reading[lifecycle.External]{Problem: why}
}

// TestRegressionUnknownInfrastructureState: an infrastructure object that could
// not be read is not taken for a Machine that never had a Node.
func TestRegressionUnknownInfrastructureState(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"before the Node is known": {draining, func(s *lifecycle.Snapshot) {
			s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes = nil, "", nil
			s.Infrastructure = unread("the server is currently unable to handle the request")
		}, "DrainingNode", "Deleting=True/DrainingNode", "Unknown DrainError Unknown"},
		"while it is deleted": {terminating, func(s *lifecycle.Snapshot) { s.Infrastructure = unread("timeout") }, "WaitingForInfrastructureDeletion", "Deleting=True/WaitingForInfrastructureDeletion", "Unknown"},
		"while the bootstrap config is deleted": {terminating, func(s *lifecycle.Snapshot) {
			s.Infrastructure, s.Bootstrap = nothing(), new(unread("timeout"))
			s.Machine.Status.Deletion.BootstrapDeletionStartTime = at(0)
		}, "WaitingForBootstrapDeletion", "", "InfrastructureDeleted Unknown"},
	})
}

// TestRegressionTransientReadErrorSkipsNothing: what could not be read stops the
// step that needs it.
func TestRegressionTransientReadErrorSkipsNothing(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"nodes, before the drain":               {draining, func(s *lifecycle.Snapshot) { s.Nodes, s.NodesProblem = nil, "connection refused" }, "DrainingNode", "Deleting=True/DrainingNode Drained=False/DrainError DrainingSucceeded=Unknown/Unknown", "Unknown DrainError"},
		"pods":                                  {draining, func(s *lifecycle.Snapshot) { s.DrainProblem = "list the pods: timeout" }, "DrainingNode", "Drained=False/DrainError", "DrainError"},
		"the control plane":                     {draining, func(s *lifecycle.Snapshot) { s.ControlPlane = new(unread("forbidden")) }, "DrainingNode", "Drained=False/DrainError", "DrainError"},
		"two Nodes of one providerID":           {draining, func(s *lifecycle.Snapshot) { twins(s); s.Machine.Status.NodeRef = nil }, "DrainingNode", "Drained=False/DrainError", "Ambiguous DrainError"},
		"attachments":                           {detaching, func(s *lifecycle.Snapshot) { s.VolumesProblem = "timeout" }, "WaitingForVolumeDetach", "VolumeDetachSucceeded=Unknown/Unknown", "Unknown"},
		"pods whose volumes are not waited for": {detaching, func(s *lifecycle.Snapshot) { attach(s); s.DrainProblem = "list the pods: timeout" }, "WaitingForVolumeDetach", "VolumeDetachSucceeded=False/WaitingForVolumeDetach", "VolumesAttached"},
		"the Node, while it is deleted":         {leaving, func(s *lifecycle.Snapshot) { s.Nodes, s.NodesProblem = nil, "connection refused" }, "DeletingNode, look again in 10s", "Deleting=True/DeletingNode", "Unknown"},
		"a Cluster that does not exist":         {draining, func(s *lifecycle.Snapshot) { s.Cluster = lifecycle.Reading[v1alpha1.Cluster]{} }, "DrainingNode", "Drained=False/DrainError", "Unknown DrainError"},
	})
}

const cutOff = "cluster prod/east is unreachable since 2026-11-21T08:00:00Z: Secret prod/east does not exist"

func remote(s *lifecycle.Snapshot) {
	s.Nodes = nil
	s.Cluster.Object.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "east"}
}

// TestAMachineOfALostClusterNamesTheWayOut: what cannot be read in another cluster
// holds the Machine, which says how to get rid of it.
func TestAMachineOfALostClusterNamesTheWayOut(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"before the drain":             {draining, func(s *lifecycle.Snapshot) { remote(s); s.NodesProblem = cutOff }, "DrainingNode", "Drained=False/DrainError", "Unknown DrainError"},
		"before volumes are looked at": {detaching, func(s *lifecycle.Snapshot) { remote(s); s.NodesProblem = cutOff }, "WaitingForVolumeDetach", "VolumeDetachSucceeded=Unknown/Unknown", "Unknown Unknown"},
	})
}

// TestUnneededUnknown: what the step at hand does not need stops nothing.
func TestUnneededUnknown(t *testing.T) {
	t.Parallel()
	exclude := map[string]string{v1alpha1.ExcludeNodeDrainingAnnotation: "", v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
	run(t, map[string]story{
		"an unreachable cluster, and the Node is left alone": {deleted, func(s *lifecycle.Snapshot) {
			s.Nodes, s.NodesProblem, s.Machine.Annotations = nil, "no route to host", exclude
		}, "WaitingForInfrastructureDeletion, record", "", "Unknown DrainSkipped VolumeDetachSkipped"},
		"a Cluster that does not exist, and the Node is left alone": {deleted, func(s *lifecycle.Snapshot) {
			s.Nodes, s.Cluster, s.Machine.Annotations = nil, lifecycle.Reading[v1alpha1.Cluster]{}, exclude
		}, "WaitingForInfrastructureDeletion, record", "", "Unknown DrainSkipped VolumeDetachSkipped"},
		"a Cluster that does not exist, and a Machine that never had a Node": {deleted, func(s *lifecycle.Snapshot) {
			s.Nodes, s.Cluster = nil, lifecycle.Reading[v1alpha1.Cluster]{}
			s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Infrastructure.Object.ProviderID = nil, "", ""
		}, "WaitingForInfrastructureDeletion, record", "", "DrainSkipped VolumeDetachSkipped"},
		"an unreachable cluster after the drain": {terminating, func(s *lifecycle.Snapshot) { s.Nodes, s.NodesProblem = nil, "no route to host" }, "WaitingForInfrastructureDeletion, delete infrastructure", "", "Unknown"},
		"an infrastructure that is gone, when it cannot be read any more": {terminating, func(s *lifecycle.Snapshot) {
			s.Infrastructure, s.Machine.Status.Deletion.BootstrapDeletionStartTime = unread("no kind DockerMachine"), at(9)
		}, "WaitingForBootstrapDeletion, delete bootstrap", "", "Unknown"},
		"an unreadable control plane of a Cluster that is deleted": {deleted, func(s *lifecycle.Snapshot) {
			s.ControlPlane, s.Cluster.Object.DeletionTimestamp = new(unread("forbidden")), at(0)
		}, "WaitingForInfrastructureDeletion, record", "", "DrainSkipped VolumeDetachSkipped"},
		"an unreadable infrastructure during the drain": {draining, func(s *lifecycle.Snapshot) {
			s.Infrastructure = unread("timeout")
			s.Drain.Pods = []*corev1.Pod{pod("a")}
		}, "DrainingNode, evict app/a", "", "DrainStarted Unknown"},
	})
}

// TestRegressionTimeoutThatDoesNotBound: a limit ends its step whatever can be read.
func TestRegressionTimeoutThatDoesNotBound(t *testing.T) {
	t.Parallel()
	limits := v1alpha1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds: new(int32(60)), NodeVolumeDetachTimeoutSeconds: new(int32(60)), NodeDeletionTimeoutSeconds: new(int32(60)),
	}
	for name, spoil := range map[string]func(*lifecycle.Snapshot){
		"nodes cannot be read":                 func(s *lifecycle.Snapshot) { s.Nodes, s.NodesProblem = nil, "timeout" },
		"pods and volumes cannot be read":      func(s *lifecycle.Snapshot) { s.DrainProblem, s.VolumesProblem = "timeout", "timeout" },
		"the control plane cannot be read":     func(s *lifecycle.Snapshot) { s.ControlPlane = new(unread("timeout")) },
		"the Cluster does not exist":           func(s *lifecycle.Snapshot) { s.Cluster = lifecycle.Reading[v1alpha1.Cluster]{} },
		"two Nodes have the providerID":        func(s *lifecycle.Snapshot) { twins(s); s.Machine.Status.NodeRef = nil },
		"nobody knows how to treat the pods":   func(s *lifecycle.Snapshot) { untreatable(s); attach(s) },
		"pods are refused, volumes stay there": func(s *lifecycle.Snapshot) { s.Drain.Pods = []*corev1.Pod{pod("a")}; attach(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				of    func() lifecycle.Snapshot
				holds lifecycle.Step
			}{{draining, lifecycle.StepDrain}, {detaching, lifecycle.StepVolumeDetach}, {leaving, lifecycle.StepDeleteNode}} {
				s := c.of()
				spoil(&s)
				s.Machine.Spec.Deletion, s.Now = limits, after(59)
				if d := lifecycle.Decide(s); d.Step != c.holds || d.RequeueAfter <= 0 || d.RequeueAfter > after(60).Sub(s.Now) {
					t.Errorf("before the limit: step %s, look again in %s; want %s", d.Step, d.RequeueAfter, c.holds)
				}
				s.Now, s.Failure = after(60), "the last try was refused"
				if d := lifecycle.Decide(s); d.Step == c.holds {
					t.Errorf("the limit of %s does not bound: %s", c.holds, told(d.Status, deletingCondition))
				}
			}
		})
	}
}

// TestClockStartsUnread: the clock of a step runs from when it is reached, also
// if nothing can be read then.
func TestClockStartsUnread(t *testing.T) {
	t.Parallel()
	s := deleted()
	s.Nodes, s.NodesProblem = nil, "no route to host"
	d := lifecycle.Decide(s)
	if began := d.Status.Deletion.NodeDrainStartTime; !d.Record || began == nil || !began.Time.Equal(start) {
		t.Errorf("the drain began at %v, recorded %v; want %v", began, d.Record, start)
	}
}

// TestRegressionNodeDeletionClock: it counts from the start of its own step, not
// from the deletion of the Machine.
func TestRegressionNodeDeletionClock(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"long after the deletion of the Machine": {leaving, func(s *lifecycle.Snapshot) {
			s.Now, s.Machine.Status.Deletion.NodeDeletionStartTime = after(7200), at(7191)
		}, "DeletingNode, delete node, look again in 1s", "", ""},
		"not before the step begins": {leaving, func(s *lifecycle.Snapshot) { s.Now, s.Machine.Status.Deletion.NodeDeletionStartTime = after(7200), nil }, "DeletingNode, record", "", ""},
	})
}

// TestLeftVolumes: "A drain timeout that has passed also ends the volume wait for
// pods that were still there, and says so."
func TestLeftVolumes(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"the drain was given up": {detaching, func(s *lifecycle.Snapshot) {
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
			s.Machine.Status.Deletion.WaitForNodeVolumeDetachStartTime, s.Now = at(60), after(90)
			mount(s, pod("a"))
		}, "WaitingForInfrastructureDeletion, record", "VolumeDetachSucceeded=True/VolumesDetached", "VolumesDetached"},
		"the drain was completed, and its limit is over by now": {detaching, func(s *lifecycle.Snapshot) {
			s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
			s.Machine.Status.Deletion.WaitForNodeVolumeDetachStartTime, s.Now = at(59), after(90)
			mount(s, pod("a"))
		}, "WaitingForVolumeDetach, evict app/a", "", "VolumesAttached"},
		"the pod is skipped": {detaching, func(s *lifecycle.Snapshot) {
			mount(s, pod("a"))
			s.Drain.Pods[0].Labels = map[string]string{v1alpha1.DrainLabel: "skip"}
		}, "WaitingForInfrastructureDeletion, record", "", "VolumesDetached"},
	})
}

// TestForeignObjects: what somebody else controls is never deleted, and that is said.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"infrastructure": {terminating, foreignInfrastructure, "WaitingForBootstrapDeletion, record", "", "NotOwned"},
		"both, to the end": {leaving, func(s *lifecycle.Snapshot) {
			s.Machine.Status.Deletion.BootstrapDeletionStartTime, s.Machine.Status.Deletion.NodeDeletionStartTime = nil, nil
			s.Infrastructure = read(lifecycle.External{Kind: "DockerMachine", Name: "worker-1"})
			foreignInfrastructure(s)
			s.Bootstrap, s.Nodes = new(s.Infrastructure), nil
		}, "DeletionCompleted, drop finalizer", "Deleting=True/DeletionCompleted", "NotOwned NotOwned NodeDeleted"},
		"the providerID of somebody else's infrastructure is not the Machine's": {deleted, func(s *lifecycle.Snapshot) {
			foreignInfrastructure(s)
			s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes, s.Bootstrap = nil, "", nil, nil
		}, "DeletionCompleted, drop finalizer", "", "DrainSkipped VolumeDetachSkipped NotOwned"},
		"an object that nobody controls is the Machine's": {terminating, func(s *lifecycle.Snapshot) {
			s.Infrastructure.Object.Owned, s.Infrastructure.Object.Controller = false, nil
		}, "WaitingForInfrastructureDeletion, delete infrastructure", "", ""},
	})
}

func untreatable(s *lifecycle.Snapshot) {
	s.Drain.Facts = drainrule.Facts{DaemonSetErrors: map[types.NamespacedName]string{{Namespace: "app", Name: "d"}: "timeout"}}
	daemon := pod("daemon")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: new(true)}}
	s.Drain.Pods = []*corev1.Pod{daemon}
}
