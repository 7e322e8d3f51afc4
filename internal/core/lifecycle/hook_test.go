package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

func hook(name string) []v1alpha1.LifecycleHook {
	return []v1alpha1.LifecycleHook{{Name: name, Owner: "my-controller"}}
}

// TestHooks holds the decision to the goals, user stories and sentences of the
// hooks document.
func TestHooks(t *testing.T) {
	t.Parallel()
	run(t, hookStories)
}

var hookStories = map[string]story{
	"Story 1: perform different actions between the time a Machine is marked deleted and the time it is deleted from the infrastructure provider": {detaching, func(s *lifecycle.Snapshot) { s.Machine.Spec.LifecycleHooks.PreTerminate = hook("AwaitReplacement") }, "WaitingForPreTerminateHook, record", "Terminable=False/HookPresent", "VolumesDetached HeldByHooks"},
	"Story 1: prolonged periods of one fewer host are prevented although the infrastructure is unreadable": {detaching, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreTerminate = hook("AwaitReplacement")
		s.Infrastructure = lifecycle.Reading[lifecycle.External]{Problem: "timeout"}
	}, "WaitingForPreTerminateHook, record", "", "VolumesDetached HeldByHooks Unknown"},
	"Story 2: some action after the Machine has been drained, but before it is removed: Drained says when": {draining, func(s *lifecycle.Snapshot) { s.Machine.Spec.LifecycleHooks.PreTerminate = hook("SyncLogs") }, "WaitingForPreTerminateHook, record", "Drained=True/Drained", "DrainStarted DrainCompleted VolumesDetached HeldByHooks"},
	"Story 3: utilize my own draining controller instead of the built-in logic": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreDrain = hook("MyOwnDrain")
		s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
	}, "WaitingForPreDrainHook", "", "HeldByHooks"},
	"Story 4: utilize my own creation controller": {newborn, func(s *lifecycle.Snapshot) { s.Machine.Spec.LifecycleHooks.PreCreate = hook("IPAMController") }, "WaitingForPreCreateHook", "Creatable=False/HookPresent", "HeldByHooks"},
	"Creatable is kept up to date while the Machine is deleted": {draining, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreCreate = hook("IPAMController")
		s.Drain.Pods = []*corev1.Pod{pod("a")}
	}, "DrainingNode, evict app/a", "Creatable=False/HookPresent", "DrainStarted"},
	"Each lifecycle point can have 0 hooks": {newborn, nil, "WaitingForBootstrap, adopt bootstrap", "", ""},
	"or more hooks, which enforce no ordering": {newborn, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreCreate = append(hook("Zebra"), hook("Ant")...)
	}, "WaitingForPreCreateHook", "Creatable=False/HookPresent", "HeldByHooks"},
	"When all hooks for a given lifecycle-point are removed, reconciliation will continue as normal": {deleted, func(s *lifecycle.Snapshot) { s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0) }, "DrainingNode, record", "", ""},
	"The machine controller should not timeout or otherwise consider the lifecycle hook as failed": {deleted, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreDrain = hook("Slow")
		s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
		s.Machine.Spec.Deletion = v1alpha1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(1)), NodeVolumeDetachTimeoutSeconds: new(int32(1))}
		s.Now = after(1e8)
	}, "WaitingForPreDrainHook", "", "HeldByHooks"},
	"Drainable and Terminable say what would be when deleted": {running, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks = v1alpha1.LifecycleHooks{PreDrain: hook("One"), PreTerminate: hook("Two")}
	}, "Running", "Creatable=True/NoHooks Drainable=False/HookPresent Drained=absent Terminable=False/HookPresent", ""},
	"preCreate hooks that come before the infrastructure hold it": {bootstrapped, func(s *lifecycle.Snapshot) { s.Machine.Spec.LifecycleHooks.PreCreate = hook("IPAMController") }, "WaitingForPreCreateHook", "Creatable=False/HookPresent", "HeldByHooks"},
	"preCreate hooks that come later hold nothing": {bootstrapped, func(s *lifecycle.Snapshot) {
		own(s.Infrastructure.Object)
		s.Machine.Spec.LifecycleHooks.PreCreate = hook("IPAMController")
	}, "WaitingForInfrastructure", "Creatable=False/HookPresent", ""},
	"a pre-drain hook that gets past admission while pods leave holds the rest of them": {draining, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreDrain = hook("Late")
		s.Machine.Status.Deletion.PreDrainHookWaitStartTime = at(0)
		s.Drain.Pods = []*corev1.Pod{pod("a")}
		s.Nodes[0].Spec.Unschedulable = false
	}, "WaitingForPreDrainHook, cordon", "", "HeldByHooks"},
	"a pre-drain hook that comes after the drain holds nothing": {terminating, func(s *lifecycle.Snapshot) { s.Machine.Spec.LifecycleHooks.PreDrain = hook("Late") }, "WaitingForInfrastructureDeletion, delete infrastructure", "", ""},
	"a pre-drain hook that comes after the drain holds pods that come late": {detaching, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreDrain = hook("Late")
		mount(s, pod("late"))
	}, "WaitingForVolumeDetach", "", "VolumesAttached"},
	"a pre-terminate hook that comes just before the infrastructure is deleted holds it": {terminating, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreTerminate = hook("Late")
		s.Machine.Status.Deletion.PreTerminateHookWaitStartTime = at(0)
	}, "WaitingForPreTerminateHook", "", "HeldByHooks"},
	"a pre-terminate hook that comes while the infrastructure goes holds nothing": {terminating, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.LifecycleHooks.PreTerminate = hook("Late")
		s.Infrastructure.Object.Deleting = true
	}, "WaitingForInfrastructureDeletion", "", ""},
	"the hook of a KubeadmControlPlane is remembered before anything is done, also long before the deletion": {newborn, func(s *lifecycle.Snapshot) { annotate(s, v1alpha1.ControlPlaneHookAnnotation) }, "WaitingForBootstrap, record", "", ""},
	"the hook of a KubeadmControlPlane is remembered when it is first seen in the deletion":                  {deleted, func(s *lifecycle.Snapshot) { annotate(s, v1alpha1.ControlPlaneHookAnnotation) }, "Recording, record", "", ""},
}

// TestTransitionTime: it changes with the status of a condition, and with nothing else.
func TestTransitionTime(t *testing.T) {
	t.Parallel()
	s := running()
	s.Machine.Status = lifecycle.Decide(s).Status
	s.Now = after(60)
	s.Machine.Spec.LifecycleHooks.PreDrain = hook("One")
	s.Machine.Status = lifecycle.Decide(s).Status
	s.Now = after(120)
	s.Machine.Spec.LifecycleHooks.PreDrain = hook("Other")
	s.Machine.Status = lifecycle.Decide(s).Status
	got := map[string]string{}
	for _, c := range s.Machine.Status.Conditions {
		got[c.Type] = c.LastTransitionTime.UTC().Format("15:04:05")
	}
	want := map[string]string{
		"BootstrapReady": "08:00:00", "Creatable": "08:00:00", "InfrastructureReady": "08:00:00", "NodeReady": "08:00:00",
		"Terminable": "08:00:00", "Drainable": "08:01:00",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transition times (-want +got):\n%s", diff)
	}
}

// TestManyHooks: messages are bounded and in a stable order.
func TestManyHooks(t *testing.T) {
	t.Parallel()
	s := deleted()
	s.Machine.Annotations = map[string]string{}
	for i := range 64 {
		long := strings.Repeat("x", 255-i)
		s.Machine.Spec.LifecycleHooks.PreDrain = append(s.Machine.Spec.LifecycleHooks.PreDrain,
			v1alpha1.LifecycleHook{Name: long, Owner: strings.Repeat("o", 512)})
		s.Machine.Annotations[fmt.Sprintf("%s/%d", v1alpha1.PreDrainHookAnnotationPrefix, i)] = strings.Repeat("value\n", 10_000)
	}
	first := lifecycle.Decide(s)
	for range 10 {
		if diff := cmp.Diff(first.Status, lifecycle.Decide(s).Status); diff != "" {
			t.Fatalf("the message flaps:\n%s", diff)
		}
	}
	for _, condition := range []string{deletingCondition, v1alpha1.ConditionDrainable} {
		text := told(first.Status, condition)
		if len(text) > 4000 || !strings.HasSuffix(text, ", ... (123 more)") || strings.Contains(text, "\n") {
			t.Errorf("%s: %d bytes: %s", condition, len(text), text)
		}
	}
}
