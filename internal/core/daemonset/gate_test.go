package daemonset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/daemonset"
)

func TestHold(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		targets string
		want    bool
		says    string
	}{
		"targeted":                      {func(*corev1.Pod) {}, upTo5000, true, ""},
		"above the target":              {func(*corev1.Pod) {}, upTo4999, false, ""},
		"no maintenance":                {func(*corev1.Pod) {}, "", false, ""},
		"an ordinary pod":               {func(p *corev1.Pod) { p.OwnerReferences = nil }, upTo5000, false, ""},
		"retained":                      {func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "skip" }, upTo5000, false, ""},
		"one that would be waited for":  {func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "wait-completed" }, upTo5000, true, ""},
		"another selector":              {func(*corev1.Pod) {}, `[{"podPriority":5000,"podType":"DaemonSet","podSelector":{"matchLabels":{"app":"net"}}}]`, false, ""},
		"the selector":                  {func(*corev1.Pod) {}, `[{"podPriority":5000,"podType":"DaemonSet","podSelector":{"matchLabels":{"app":"log"}}}]`, true, ""},
		"targets that cannot be read":   {func(*corev1.Pod) {}, "{", false, "annotation ebbtide.dev/drain-targets of node one: unexpected end of JSON input"},
		"targets that are no such list": {func(*corev1.Pod) {}, `{"a":1}`, false, "annotation ebbtide.dev/drain-targets of node one: json: cannot unmarshal object into Go value of type []v1alpha1.DrainPlanEntry"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod()
			test.change(pod)
			got, err := daemonset.Hold(pod, aNode(test.targets))
			says := ""
			if err != nil {
				says = err.Error()
			}
			if got != test.want || says != test.says {
				t.Errorf("Hold() = %v, %q; want %v, %q", got, says, test.want, test.says)
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
		says       string
	}{
		"no node":                         {nil, corev1.Toleration{}, daemonset.Released, "The node that the pod was held back from does not exist."},
		"no maintenance":                  {aNode(""), corev1.Toleration{}, daemonset.Released, "No maintenance keeps the pod away from node one."},
		"a target that has shrunk":        {aNode(upTo4999), corev1.Toleration{}, daemonset.Released, "No maintenance keeps the pod away from node one."},
		"a partial target":                {aNode(upTo5000), corev1.Toleration{}, daemonset.Kept, "The maintenance of node one is not complete."},
		"a target that cannot be read":    {aNode("}"), corev1.Toleration{}, daemonset.Kept, "It is unknown what has to stay away from the node: annotation ebbtide.dev/drain-targets of node one: invalid character '}' looking for beginning of value"},
		"all have to stay away":           {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}, daemonset.Removed, "The DaemonSet does not want the pod on node one as long as taint ebbtide.dev/daemonset-drain is there."},
		"it tolerates everything":         {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Operator: corev1.TolerationOpExists}, daemonset.Kept, "The maintenance of node one is not complete."},
		"it tolerates our taint":          {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Key: v1alpha1.DaemonSetTaint}, daemonset.Kept, "The maintenance of node one is not complete."},
		"it tolerates another effect":     {tainted(corev1.TaintEffectNoSchedule), corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, daemonset.Removed, "The DaemonSet does not want the pod on node one as long as taint ebbtide.dev/daemonset-drain is there."},
		"somebody else's taint like ours": {tainted(corev1.TaintEffectPreferNoSchedule), corev1.Toleration{Key: "x"}, daemonset.Kept, "The maintenance of node one is not complete."},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod()
			pod.Spec.NodeName = ""
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1alpha1.MaintenanceGate}}
			if test.toleration != (corev1.Toleration{}) {
				pod.Spec.Tolerations = []corev1.Toleration{test.toleration}
			}
			got, says := daemonset.FateOf(pod, test.node)
			if diff := cmp.Diff([]string{string(test.want), test.says}, []string{string(got), says}); diff != "" {
				t.Errorf("FateOf() (-want +got):\n%s", diff)
			}
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
