package lifecycle_test

import (
	"slices"
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
		"before the Node is known": {
			of: draining, change: func(s *lifecycle.Snapshot) {
				s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes = nil, "", nil
				s.Infrastructure = unread("the server is currently unable to handle the request")
			},
			does:   "DrainingNode",
			says:   map[string]string{deletingCondition: "True/DrainingNode"},
			events: []string{"Unknown", "DrainError", "Unknown"},
		},
		"while it is deleted": {
			of: terminating, change: func(s *lifecycle.Snapshot) { s.Infrastructure = unread("timeout") },
			does:   "WaitingForInfrastructureDeletion",
			says:   map[string]string{deletingCondition: "True/WaitingForInfrastructureDeletion"},
			events: []string{"Unknown"},
		},
		"while the bootstrap config is deleted": {
			of: terminating, change: func(s *lifecycle.Snapshot) {
				s.Infrastructure, s.Bootstrap = nothing(), new(unread("timeout"))
				s.Machine.Status.Deletion.BootstrapDeletionStartTime = at(0)
			},
			does: "WaitingForBootstrapDeletion", events: []string{"InfrastructureDeleted", "Unknown"},
		},
	})
}

// TestRegressionTransientReadErrorSkipsNothing: what could not be read stops the
// step that needs it.
func TestRegressionTransientReadErrorSkipsNothing(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"nodes, before the drain": {
			of: draining, change: func(s *lifecycle.Snapshot) { s.Nodes, s.NodesProblem = nil, "connection refused" },
			does: "DrainingNode",
			says: map[string]string{
				deletingCondition: "True/DrainingNode",
				drainedCondition:  "False/DrainError",
				drainingCondition: "Unknown/Unknown",
			},
			events: []string{"Unknown", "DrainError"},
		},
		"pods": {
			of: draining, change: func(s *lifecycle.Snapshot) { s.DrainProblem = "list the pods: timeout" },
			does: "DrainingNode", says: map[string]string{drainedCondition: "False/DrainError"},
			events: []string{"DrainError"},
		},
		"the control plane": {
			of: draining, change: func(s *lifecycle.Snapshot) { s.ControlPlane = new(unread("forbidden")) },
			does:   "DrainingNode",
			says:   map[string]string{drainedCondition: "False/DrainError"},
			events: []string{"DrainError"},
		},
		"two Nodes of one providerID": {
			of: draining, change: func(s *lifecycle.Snapshot) { twins(s); s.Machine.Status.NodeRef = nil },
			does:   "DrainingNode",
			says:   map[string]string{drainedCondition: "False/DrainError"},
			events: []string{"Ambiguous", "DrainError"},
		},
		"attachments": {
			of: detaching, change: func(s *lifecycle.Snapshot) { s.VolumesProblem = "timeout" },
			does: "WaitingForVolumeDetach", says: map[string]string{volumesCondition: "Unknown/Unknown"}, events: []string{"Unknown"},
		},
		"pods whose volumes are not waited for": {
			of: detaching, change: func(s *lifecycle.Snapshot) { attach(s); s.DrainProblem = "list the pods: timeout" },
			does:   "WaitingForVolumeDetach",
			says:   map[string]string{volumesCondition: "False/WaitingForVolumeDetach"},
			events: []string{"VolumesAttached"},
		},
		"the Node, while it is deleted": {
			of: leaving, change: func(s *lifecycle.Snapshot) { s.Nodes, s.NodesProblem = nil, "connection refused" },
			does:   "DeletingNode, look again in 10s",
			says:   map[string]string{deletingCondition: "True/DeletingNode"},
			events: []string{"Unknown"},
		},
		"a Cluster that does not exist": {
			of: draining, change: func(s *lifecycle.Snapshot) { s.Cluster = lifecycle.Reading[v1alpha1.Cluster]{} },
			does:   "DrainingNode",
			says:   map[string]string{drainedCondition: "False/DrainError"},
			events: []string{"Unknown", "DrainError"},
		},
	})
}

const cutOff = "cluster prod/east is unreachable since 2026-11-21T08:00:00Z: Secret prod/east does not exist"

// remote has the Cluster reached by a kubeconfig, and its nodes not read.
func remote(s *lifecycle.Snapshot) {
	s.Nodes = nil
	s.Cluster.Object.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "east"}
}

// TestAMachineOfALostClusterNamesTheWayOut: what cannot be read in another cluster
// holds the Machine, which says how to get rid of it.
func TestAMachineOfALostClusterNamesTheWayOut(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"before the drain": {
			of: draining, change: func(s *lifecycle.Snapshot) { remote(s); s.NodesProblem = cutOff },
			does:   "DrainingNode",
			says:   map[string]string{drainedCondition: "False/DrainError"},
			events: []string{"Unknown", "DrainError"},
		},
		"before volumes are looked at": {
			of: detaching, change: func(s *lifecycle.Snapshot) { remote(s); s.NodesProblem = cutOff },
			does:   "WaitingForVolumeDetach",
			says:   map[string]string{volumesCondition: "Unknown/Unknown"},
			events: []string{"Unknown", "Unknown"},
		},
	})
}

// TestUnneededUnknown: what the step at hand does not need stops nothing.
func TestUnneededUnknown(t *testing.T) {
	t.Parallel()
	exclude := map[string]string{v1alpha1.ExcludeNodeDrainingAnnotation: "", v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
	run(t, map[string]story{
		"an unreachable cluster, and the Node is left alone": {
			of: deleted, change: func(s *lifecycle.Snapshot) {
				s.Nodes, s.NodesProblem, s.Machine.Annotations = nil, "no route to host", exclude
			},
			does: "WaitingForInfrastructureDeletion, record", events: []string{"Unknown", "DrainSkipped", "VolumeDetachSkipped"},
		},
		"a Cluster that does not exist, and the Node is left alone": {
			of: deleted, change: func(s *lifecycle.Snapshot) {
				s.Nodes, s.Cluster, s.Machine.Annotations = nil, lifecycle.Reading[v1alpha1.Cluster]{}, exclude
			},
			does: "WaitingForInfrastructureDeletion, record", events: []string{"Unknown", "DrainSkipped", "VolumeDetachSkipped"},
		},
		"a Cluster that does not exist, and a Machine that never had a Node": {
			of: deleted, change: func(s *lifecycle.Snapshot) {
				s.Nodes, s.Cluster = nil, lifecycle.Reading[v1alpha1.Cluster]{}
				s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Infrastructure.Object.ProviderID = nil, "", ""
			},
			does: "WaitingForInfrastructureDeletion, record", events: []string{"DrainSkipped", "VolumeDetachSkipped"},
		},
		"an unreachable cluster after the drain": {
			of: terminating, change: func(s *lifecycle.Snapshot) { s.Nodes, s.NodesProblem = nil, "no route to host" },
			does: "WaitingForInfrastructureDeletion, delete infrastructure", events: []string{"Unknown"},
		},
		"an infrastructure that is gone, when it cannot be read any more": {
			of: terminating, change: func(s *lifecycle.Snapshot) {
				s.Infrastructure, s.Machine.Status.Deletion.BootstrapDeletionStartTime = unread("no kind DockerMachine"), at(9)
			},
			does: "WaitingForBootstrapDeletion, delete bootstrap", events: []string{"Unknown"},
		},
		"an unreadable control plane of a Cluster that is deleted": {
			of: deleted, change: func(s *lifecycle.Snapshot) {
				s.ControlPlane, s.Cluster.Object.DeletionTimestamp = new(unread("forbidden")), at(0)
			},
			does: "WaitingForInfrastructureDeletion, record", events: []string{"DrainSkipped", "VolumeDetachSkipped"},
		},
		"an unreadable infrastructure during the drain": {
			of: draining, change: func(s *lifecycle.Snapshot) {
				s.Infrastructure = unread("timeout")
				s.Drain.Pods = []*corev1.Pod{pod("a")}
			},
			does: "DrainingNode, evict app/a", events: []string{"DrainStarted", "Unknown"},
		},
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
		"long after the deletion of the Machine": {
			of: leaving, change: func(s *lifecycle.Snapshot) {
				s.Now, s.Machine.Status.Deletion.NodeDeletionStartTime = after(7200), at(7191)
			},
			does: "DeletingNode, delete node, look again in 1s",
		},
		"not before the step begins": {
			of: leaving, change: func(s *lifecycle.Snapshot) { s.Now, s.Machine.Status.Deletion.NodeDeletionStartTime = after(7200), nil },
			does: "DeletingNode, record",
		},
	})
}

// TestRegressionDaemonSetLookupFails: pods that may be a DaemonSet's are neither
// evicted nor left out, and say why.
func TestRegressionDaemonSetLookupFails(t *testing.T) {
	t.Parallel()
	s := draining()
	untreatable(&s)
	s.Drain.Pods = append(s.Drain.Pods, pod("a"))
	d := lifecycle.Decide(s)
	if got := does(d); got != "DrainingNode, evict app/a" {
		t.Errorf("got %s", got)
	}
	if !slices.Contains(reasons(d), "DrainError") {
		t.Errorf("events %v", reasons(d))
	}
}

// TestLeftVolumes: "A drain timeout that has passed also ends the volume wait for
// pods that were still there, and says so."
func TestLeftVolumes(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"the drain was given up": {
			of: detaching, change: func(s *lifecycle.Snapshot) {
				s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
				s.Machine.Status.Deletion.WaitForNodeVolumeDetachStartTime, s.Now = at(60), after(90)
				mount(s, pod("a"))
			},
			does:   "WaitingForInfrastructureDeletion, record",
			says:   map[string]string{volumesCondition: "True/VolumesDetached"},
			events: []string{"VolumesDetached"},
		},
		"the drain was completed, and its limit is over by now": {
			of: detaching, change: func(s *lifecycle.Snapshot) {
				s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
				s.Machine.Status.Deletion.WaitForNodeVolumeDetachStartTime, s.Now = at(59), after(90)
				mount(s, pod("a"))
			},
			does: "WaitingForVolumeDetach, evict app/a", events: []string{"VolumesAttached"},
		},
		"the pod is skipped": {
			of: detaching, change: func(s *lifecycle.Snapshot) {
				mount(s, pod("a"))
				s.Drain.Pods[0].Labels = map[string]string{v1alpha1.DrainLabel: "skip"}
			},
			does: "WaitingForInfrastructureDeletion, record", events: []string{"VolumesDetached"},
		},
	})
}

// TestForeignObjects: what somebody else controls is never deleted, and that is said.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"infrastructure": {
			of: terminating, change: foreignInfrastructure,
			does: "WaitingForBootstrapDeletion, record", events: []string{"NotOwned"},
		},
		"both, to the end": {
			of: leaving, change: func(s *lifecycle.Snapshot) {
				s.Machine.Status.Deletion.BootstrapDeletionStartTime, s.Machine.Status.Deletion.NodeDeletionStartTime = nil, nil
				s.Infrastructure = read(lifecycle.External{Kind: "DockerMachine", Name: "worker-1"})
				foreignInfrastructure(s)
				s.Bootstrap, s.Nodes = new(s.Infrastructure), nil
			},
			does:   "DeletionCompleted, drop finalizer",
			says:   map[string]string{deletingCondition: "True/DeletionCompleted"},
			events: []string{"NotOwned", "NotOwned", "NodeDeleted"},
		},
		"the providerID of somebody else's infrastructure is not the Machine's": {
			of: deleted, change: func(s *lifecycle.Snapshot) {
				foreignInfrastructure(s)
				s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID, s.Nodes, s.Bootstrap = nil, "", nil, nil
			},
			does: "DeletionCompleted, drop finalizer", events: []string{"DrainSkipped", "VolumeDetachSkipped", "NotOwned"},
		},
		"an object that nobody controls is the Machine's": {
			of: terminating, change: func(s *lifecycle.Snapshot) {
				s.Infrastructure.Object.Owned, s.Infrastructure.Object.Controller = false, nil
			},
			does: "WaitingForInfrastructureDeletion, delete infrastructure",
		},
	})
}

// untreatable has a pod of which nobody can say whether its DaemonSet exists.
func untreatable(s *lifecycle.Snapshot) {
	s.Drain.Facts = drainrule.Facts{DaemonSetErrors: map[types.NamespacedName]string{{Namespace: "app", Name: "d"}: "timeout"}}
	daemon := pod("daemon")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: new(true)}}
	s.Drain.Pods = []*corev1.Pod{daemon}
}
