package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// rebooting is a rollout that reboots nodes that require it.
func rebooting(mode v1alpha1.RolloutMode) func(*v1alpha1.NodeRolloutSpec) {
	return func(spec *v1alpha1.NodeRolloutSpec) {
		spec.Mode, spec.Target, spec.Reboot = mode, nil, true
		spec.When = &v1alpha1.RolloutWhen{RebootRequired: true, Conditions: []string{"KernelDeadlock"}}
	}
}

// report has a node report a condition. It keeps its transition if the status is as before.
func (w *world) report(node, condition string, status corev1.ConditionStatus) {
	w.editNode(node, func(n *corev1.Node) {
		now := metav1.NewTime(w.now)
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; string(c.Type) == condition {
				if c.Status != status {
					c.LastTransitionTime = now
				}
				c.Status, c.LastHeartbeatTime = status, now
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeConditionType(condition), Status: status, LastTransitionTime: now, LastHeartbeatTime: now,
		})
	})
}

// reboot has a node boot for its NodeMaintenance, which then completes. The agent of the node
// reports after the boot, with a status; empty if it has not yet.
func (w *world) reboot(node string, after corev1.ConditionStatus) {
	m := w.of(node)
	w.accept(m.Name)
	w.drain(m.Name)
	w.now = w.now.Add(time.Minute)
	w.editMaintenance(m.Name, func(m *v1alpha1.NodeMaintenance) {
		w.handOver(m)
	})
	w.now = w.now.Add(time.Minute)
	w.editNode(node, func(n *corev1.Node) { n.Status.NodeInfo.BootID = "boot-" + string(w.uid()) })
	if after != "" {
		w.report(node, v1alpha1.NodeRebootRequired, after)
	}
	w.now = w.now.Add(time.Minute)
	w.editMaintenance(m.Name, func(m *v1alpha1.NodeMaintenance) {
		setCondition(w, m, v1alpha1.ConditionReturned, true, v1alpha1.ReasonReturned)
		m.Spec.Stage = v1alpha1.StageComplete
	})
	w.finish(m.Name)
}

func TestNodesThatRequireARebootAreRebooted(t *testing.T) {
	t.Parallel()
	tell(t, map[string]story{
		"none requires it": {func(w *world) {
			w.start("patch", rebooting(v1alpha1.RolloutOnce))
		}, []string{"3 done", "Complete=True: AllDone"}},
		"one requires it": {func(w *world) {
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutOnce))
			w.decide()
			if m := w.of("b"); m.Annotations[v1alpha1.RebootAnnotation] != "true" || m.Spec.CompleteWhen == nil || !m.Spec.CompleteWhen.NewBoot {
				w.t.Errorf("its NodeMaintenance does not reboot it: %v %v", m.Annotations, m.Spec.CompleteWhen)
			}
		}, []string{"2 done", "b: Draining"}},
		"another condition asks for it": {func(w *world) {
			w.report("c", "KernelDeadlock", corev1.ConditionTrue)
			w.report("a", "OtherCondition", corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutOnce))
		}, []string{"2 done", "c: Draining"}},
		"it was rebooted": {func(w *world) {
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutOnce))
			w.decide()
			w.reboot("b", corev1.ConditionFalse)
		}, []string{"3 done", "Complete=True: AllDone"}},
		"its agent has not reported since": {func(w *world) {
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutOnce))
			w.decide()
			w.reboot("b", "")
		}, []string{"3 done", "Complete=True: AllDone"}},
		"its agent has last reported before the boot": {func(w *world) {
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutOnce))
			w.decide()
			handedOver := w.now.Add(time.Minute)
			w.reboot("b", "")
			w.editNode("b", func(n *corev1.Node) {
				n.Status.Conditions[slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
					return c.Type == v1alpha1.NodeRebootRequired
				})].LastHeartbeatTime = metav1.NewTime(handedOver.Add(time.Second))
			})
			w.editMaintenance(w.of("b").Name, func(m *v1alpha1.NodeMaintenance) {
				record := m.Annotations[v1alpha1.HandedOverAnnotation]
				m.Annotations[v1alpha1.HandedOverAnnotation] = record[:len(record)-1] + fmt.Sprintf(
					`,"seen":{"bootID":"later","ready":"True","readyTransition":%q}}`, handedOver.Add(time.Minute).UTC().Format(time.RFC3339))
			})
		}, []string{"3 done", "Complete=True: AllDone"}},
		"the sentinel comes back to a rollout that is complete": {func(w *world) {
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutOnce))
			w.decide()
			w.reboot("b", corev1.ConditionFalse)
			w.decide()
			w.now = w.now.Add(time.Hour)
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
		}, []string{"3 done", "Complete=True: AllDone"}},
	})
}

func TestContinuousRolloutMaintainsNodesAgain(t *testing.T) {
	t.Parallel()
	tell(t, map[string]story{
		"the sentinel never goes away": {func(w *world) {
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutContinuous))
			w.decide()
			w.reboot("b", corev1.ConditionTrue)
		}, []string{"2 done", "b failed: StillNeeded", "Complete=False: NodesFailed", "Degraded=True: MaxFailures"}},
		"the sentinel comes back": {func(w *world) {
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
			w.start("patch", rebooting(v1alpha1.RolloutContinuous))
			w.decide()
			w.reboot("b", corev1.ConditionFalse)
			w.decide()
			w.now = w.now.Add(time.Hour)
			w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
		}, []string{"2 done", "b: Draining"}},
		"a continuous rollout has nothing to do": {func(w *world) {
			w.start("patch", rebooting(v1alpha1.RolloutContinuous))
		}, []string{"3 done", "Complete=False: Idle"}},
		"a continuous rollout finds an old kernel again": {func(w *world) {
			w.start("patch", func(spec *v1alpha1.NodeRolloutSpec) {
				spec.NodeSelector, spec.Mode = named("a"), v1alpha1.RolloutContinuous
			})
			w.decide()
			w.succeed("a")
			w.decide()
			w.editNode("a", func(n *corev1.Node) { n.Status.NodeInfo.KernelVersion = oldKernel })
		}, []string{"a: Draining"}},
		"a reboot is added in the middle": {func(w *world) {
			w.start("patch")
			w.decide()
			w.accept(w.of("a").Name)
			w.editSpec("patch", func(spec *v1alpha1.NodeRolloutSpec) { spec.Reboot = true })
			w.decide()
			if m := w.of("a"); m.Annotations[v1alpha1.RebootAnnotation] != "true" || !m.Spec.CompleteWhen.NewBoot {
				w.t.Errorf("its NodeMaintenance does not reboot it: %v %v", m.Annotations, m.Spec.CompleteWhen)
			}
		}, []string{"a: Draining", "b c wait: MaxUnavailable"}},
	})
}

// A cache that is behind may not show yet that a node needs maintenance: only the API server says
// that a rollout is complete, as that is final.
func TestCompletionIsConfirmedByTheAPIServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	w.start("patch", rebooting(v1alpha1.RolloutOnce))
	s := w.snapshot()
	s.Live = false
	d := rollout.Decide(s)
	if status := d.Rollouts[0].Status; !d.NeedsLive || status.CompletedGeneration != 0 {
		t.Errorf("by its cache: needs live %t, complete %d", d.NeedsLive, status.CompletedGeneration)
	}
	s.Live = true
	d = rollout.Decide(s)
	if status := d.Rollouts[0].Status; d.NeedsLive || status.CompletedGeneration != 1 {
		t.Errorf("by the API server: needs live %t, complete %d", d.NeedsLive, status.CompletedGeneration)
	}
	w.apply(d, never)
	s = w.snapshot()
	s.Live = false
	if rollout.Decide(s).NeedsLive {
		t.Error("a rollout that is complete is confirmed again")
	}
}

// A compromised kubelet that requires a reboot every minute costs itself, and no budget of others.
func TestNodeThatAlwaysRequiresARebootTakesOneSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.start("patch", rebooting(v1alpha1.RolloutContinuous))
	for range 50 {
		w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionFalse)
		w.now = w.now.Add(time.Minute)
		w.report("b", v1alpha1.NodeRebootRequired, corev1.ConditionTrue)
		w.decide()
		if r, _ := find(w.rollouts, "patch"); len(r.Status.Working) > 1 || r.Status.FailedCount > 0 {
			t.Fatalf("status is %+v", r.Status)
		}
		w.reboot("b", corev1.ConditionFalse)
		w.decide()
	}
	if len(w.maintenances) > 2 {
		t.Errorf("%d NodeMaintenances are left of one node, want at most 2", len(w.maintenances))
	}
}
