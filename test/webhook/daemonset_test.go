package webhook

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// suppress creates a node that keeps away what the targets say.
func suppress(t *testing.T, c *cluster.Cluster, name, targets string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.DrainTargetsAnnotation: targets}}}
	must(t, c.Mighty(t, cluster.Account.User()).Create(t.Context(), node))
	t.Cleanup(func() { must(t, c.Client.Delete(context.WithoutCancel(t.Context()), node)) })
}

const (
	allDaemonSets = `[{"podPriority":2147483647,"podType":"DaemonSet"}]`
	labelledLog   = `[{"podPriority":0,"podType":"DaemonSet","podSelector":{"matchLabels":{"app":"log"}}}]`
)

func TestPodsOfDaemonSetsAreHeldBack(t *testing.T) {
	c := newAPI(t)
	namespace, all, some := c.Namespace(t), c.Pool()+"-all", c.Pool()+"-some"
	suppress(t, c, all, allDaemonSets)
	suppress(t, c, some, labelledLog)
	ours := corev1.PodSchedulingGate{Name: v1alpha1.MaintenanceGate}
	theirs := corev1.PodSchedulingGate{Name: "example.com/theirs"}
	for name, test := range map[string]struct {
		node   string
		change func(*corev1.Pod)
		want   []corev1.PodSchedulingGate
	}{
		"targeted":             {all, func(*corev1.Pod) {}, []corev1.PodSchedulingGate{ours}},
		"held-by-others-too":   {all, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{theirs} }, []corev1.PodSchedulingGate{theirs, ours}},
		"held-already":         {all, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{ours} }, []corev1.PodSchedulingGate{ours}},
		"retained":             {all, func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.DrainLabel: "skip"} }, nil},
		"not-targeted":         {some, func(*corev1.Pod) {}, nil},
		"targeted-by-selector": {some, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "log"} }, []corev1.PodSchedulingGate{ours}},
		"node-without-record":  {"nowhere", func(*corev1.Pod) {}, nil},
		"ordinary-pod":         {all, func(p *corev1.Pod) { p.OwnerReferences = nil }, nil},
		"owned-not-controlled": {all, func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, nil},
		"on-its-node-already":  {all, func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.Affinity = all, nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := sample.DaemonPod(namespace, name, test.node)
			test.change(pod)
			user, warnings := listening(t, c)
			must(t, user.Create(t.Context(), pod))
			if diff := cmp.Diff(test.want, pod.Spec.SchedulingGates); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
			if len(warnings.text) > 0 {
				t.Errorf("warnings are %q, want none", warnings.text)
			}
		})
	}
}
