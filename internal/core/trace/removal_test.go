package trace_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/trace"
)

// A maintenance waits for an autoscaler if that removes all nodes that it still holds.
func TestAutoscalersThatAreWaitedFor(t *testing.T) {
	node := func(name, holders string, removed bool) *corev1.Node {
		n := &corev1.Node{ObjectMeta: annotated(v1alpha1.CordonAnnotation, `{"wasUnschedulable":false,"holders":[`+holders+`]}`)}
		n.Name = name
		if removed {
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.ToBeDeletedTaint, Effect: corev1.TaintEffectNoSchedule}}
		}
		return n
	}
	unreadable := node("node-5", "", true)
	unreadable.Annotations[v1alpha1.CordonAnnotation] = "{"
	var seen trace.Removals
	for _, n := range []*corev1.Node{
		node("node-1", `"both","removed"`, true), node("node-2", `"removed"`, true), node("node-3", `"both","kept"`, false), {}, unreadable,
	} {
		seen.See(n)
	}
	for _, name := range []string{"both", "kept", "nobody", ""} {
		if got := seen.Awaited(name); len(got) > 0 {
			t.Errorf("%q waits for %v, though managers have something to give back", name, got)
		}
	}
	got := seen.Awaited("removed")
	if len(got) != 2 || !slices.ContainsFunc(got, func(note string) bool {
		return strings.HasPrefix(note, "The cluster-autoscaler drains node node-2 to remove it") && strings.Contains(note, "kubectl taint node node-2 ToBeDeletedByClusterAutoscaler:NoSchedule-")
	}) {
		t.Errorf("removed waits for %q, want to learn of both nodes", got)
	}
}
