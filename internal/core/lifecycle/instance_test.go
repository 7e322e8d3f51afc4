package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

func seenBefore(change func(*lifecycle.Snapshot)) func(*lifecycle.Snapshot) {
	return func(s *lifecycle.Snapshot) {
		s.Machine.Status.InfrastructureSeen = true
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		attach(s)
		change(s)
	}
}

// TestAnInstanceThatGoesByItself: where the instance is gone, or goes and does not
// answer any more, nobody could end a pod or let go of a volume.
func TestAnInstanceThatGoesByItself(t *testing.T) {
	t.Parallel()
	run(t, map[string]story{
		"it is gone": {draining, seenBefore(func(s *lifecycle.Snapshot) { s.Infrastructure = nothing() }), "WaitingForBootstrapDeletion, record", "Drained=True/Skipped DrainingSucceeded=False/Skipped VolumeDetachSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped NotFound"},
		"it is gone while volumes are waited for": {detaching, seenBefore(func(s *lifecycle.Snapshot) { s.Infrastructure = nothing() }), "WaitingForBootstrapDeletion, record", "VolumeDetachSucceeded=False/Skipped", "VolumeDetachSkipped NotFound"},
		"it is gone, and the cluster with it": {draining, seenBefore(func(s *lifecycle.Snapshot) {
			s.Infrastructure, s.Nodes, s.NodesProblem = nothing(), nil, "no route to host"
		}), "WaitingForBootstrapDeletion, record", "DrainingSucceeded=False/Skipped", "Unknown DrainSkipped VolumeDetachSkipped NotFound"},
		"pre-drain hooks hold all the same": {deleted, seenBefore(func(s *lifecycle.Snapshot) {
			s.Infrastructure, s.Machine.Spec.LifecycleHooks.PreDrain = nothing(), hook("MigrateImportantApp")
		}), "WaitingForPreDrainHook, record", "", "HeldByHooks NotFound"},
		"nobody knows whether it is gone": {draining, seenBefore(func(s *lifecycle.Snapshot) { s.Infrastructure = unread("timeout") }), "DrainingNode, evict app/a", "", "DrainStarted Unknown"},
		"it never was":                    {draining, seenBefore(func(s *lifecycle.Snapshot) { s.Infrastructure, s.Machine.Status.InfrastructureSeen = nothing(), false }), "DrainingNode, evict app/a", "", "DrainStarted NotFound"},
	})
}

// TestAnInstanceThatIsDeletedByOthers: it is drained as long as its kubelet answers.
func TestAnInstanceThatIsDeletedByOthers(t *testing.T) {
	t.Parallel()
	going := func(s *lifecycle.Snapshot) { s.Infrastructure.Object.Deleting = true }
	run(t, map[string]story{
		"it goes, and its kubelet answers":          {draining, seenBefore(going), "DrainingNode, evict app/a", "", "DrainStarted"},
		"it goes, and its kubelet does not answer":  {draining, seenBefore(func(s *lifecycle.Snapshot) { going(s); unreachable(s) }), "WaitingForInfrastructureDeletion, record", "DrainingSucceeded=False/Skipped VolumeDetachSucceeded=False/Skipped", "DrainSkipped VolumeDetachSkipped"},
		"its kubelet does not answer, and it stays": {draining, seenBefore(unreachable), "DrainingNode, evict app/a", "", "DrainStarted"},
	})
}

// TestInfrastructureIsRemembered: that it was there is noted while it is.
func TestInfrastructureIsRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*lifecycle.Snapshot)
		want   bool
	}{
		"it is there":           {func(*lifecycle.Snapshot) {}, true},
		"it is somebody else's": {func(s *lifecycle.Snapshot) { s.Infrastructure.Object.Owned = false }, false},
		"it is not there":       {func(s *lifecycle.Snapshot) { s.Infrastructure = nothing() }, false},
		"it was there": {
			func(s *lifecycle.Snapshot) { s.Infrastructure, s.Machine.Status.InfrastructureSeen = nothing(), true }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running()
			c.change(&s)
			if got := lifecycle.Decide(s).Status.InfrastructureSeen; got != c.want {
				t.Errorf("infrastructureSeen is %t, want %t", got, c.want)
			}
		})
	}
}
