package daemonset_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestHold(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		targets string
		want    bool
		failed  bool
	}{
		"targeted":                      {func(*corev1.Pod) {}, upTo5000, true, false},
		"above the target":              {func(*corev1.Pod) {}, upTo4999, false, false},
		"no maintenance":                {func(*corev1.Pod) {}, "", false, false},
		"an ordinary pod":               {func(p *corev1.Pod) { p.OwnerReferences = nil }, upTo5000, false, false},
		"retained":                      {func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "skip" }, upTo5000, false, false},
		"one that would be waited for":  {func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "wait-completed" }, upTo5000, true, false},
		"another selector":              {func(*corev1.Pod) {}, `[{"podPriority":5000,"podType":"DaemonSet","podSelector":{"matchLabels":{"app":"net"}}}]`, false, false},
		"the selector":                  {func(*corev1.Pod) {}, `[{"podPriority":5000,"podType":"DaemonSet","podSelector":{"matchLabels":{"app":"log"}}}]`, true, false},
		"targets that cannot be read":   {func(*corev1.Pod) {}, "{", false, true},
		"targets that are no such list": {func(*corev1.Pod) {}, `{"a":1}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod()
			test.change(pod)
			got, err := daemonset.Hold(pod, aNode(test.targets))
			if got != test.want || (err != nil) != test.failed {
				t.Errorf("Hold() = %v, %v; want %v, failed %v", got, err, test.want, test.failed)
			}
			if err != nil {
				golden.Message(t, err.Error())
			}
		})
	}
}

func TestFateOf(t *testing.T) {
	tainted := func(effect corev1.TaintEffect) *corev1.Node {
		node := aNode(upTo5000)
		node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DaemonSetTaint, Effect: effect}}
		return node
	}
	for name, test := range map[string]struct {
		node       *corev1.Node
		toleration corev1.Toleration
		want       daemonset.Fate
	}{
		"no node":                         {nil, corev1.Toleration{}, daemonset.Released},
		"no maintenance":                  {aNode(""), corev1.Toleration{}, daemonset.Released},
		"a target that has shrunk":        {aNode(upTo4999), corev1.Toleration{}, daemonset.Released},
		"a partial target":                {aNode(upTo5000), corev1.Toleration{}, daemonset.Kept},
		"a target that cannot be read":    {aNode("}"), corev1.Toleration{}, daemonset.Kept},
		"all have to stay away":           {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}, daemonset.Removed},
		"it tolerates everything":         {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Operator: corev1.TolerationOpExists}, daemonset.Kept},
		"it tolerates our taint":          {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Key: v1alpha1.DaemonSetTaint}, daemonset.Kept},
		"it tolerates another effect":     {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, daemonset.Removed},
		"somebody else's taint like ours": {tainted(corev1.TaintEffectPreferNoSchedule), corev1.Toleration{Key: "x"}, daemonset.Kept},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod()
			pod.Spec.NodeName = ""
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1alpha1.MaintenanceGate}}
			if test.toleration != (corev1.Toleration{}) {
				pod.Spec.Tolerations = []corev1.Toleration{test.toleration}
			}
			got, says := daemonset.FateOf(pod, test.node)
			if got != test.want {
				t.Errorf("FateOf() = %s (%s), want %s", got, says, test.want)
			}
			golden.Message(t, string(got), says)
		})
	}
}

func TestHeld(t *testing.T) {
	pod := aPod()
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other.example.com/gate"}}
	if daemonset.Held(pod) {
		t.Error("a pod that somebody else holds back is called ours")
	}
	pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: v1alpha1.MaintenanceGate})
	if !daemonset.Held(pod) {
		t.Error("a pod that two hold back is not called ours")
	}
}
