package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/test/golden"
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
	golden.Equal(t, "life.txt", trace)
}

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
