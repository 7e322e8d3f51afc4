package capi

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// pair is two Machines of one pool in the same state. Cluster API drains the first by itself,
// because it opts out of the bridge, and the other is behind the bridge.
type pair struct{ alone, behind *unstructured.Unstructured }

// pairOf creates a pool of as many Machines as are asked for, and returns a pair of them and
// the rest.
func (w *world) pairOf(machines int, more ...string) (p pair, rest []*unstructured.Unstructured) {
	w.t.Helper()
	w.cluster("prod", optedIn)
	w.deployment("workers", "prod", machines, more...)
	w.awaitHooks(machines)
	all := w.machines()
	w.label(all[0], v1alpha1.DrainOptLabel, "false")
	w.awaitHooks(machines - 1)
	return pair{all[0], all[1]}, all[2:]
}

// blockedPair is a pair of Machines with a pod each that no budget lets go.
func blockedPair(t *testing.T, spec cluster.Spec, more ...string) (*world, pair) {
	t.Helper()
	w := newWorld(t, spec)
	p, _ := w.pairOf(2, more...)
	for _, m := range p.both() {
		w.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: m.GetName(), Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: nodeOf(m), Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		})
	}
	three := intstr.FromInt32(3)
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &three, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	return w, p
}

func (p pair) both() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{p.alone, p.behind}
}

// oneLook is after how long Cluster API looks again at a drain that is not finished.
const oneLook = 20 * time.Second

// race does something to both Machines and waits until Cluster API has finished both drains.
// Behind the bridge that may take two looks longer than without it. Both are measured in the
// same run, so that a slow machine slows both.
func (w *world) race(p pair, order func(*unstructured.Unstructured)) {
	w.t.Helper()
	machines := &unstructured.UnstructuredList{}
	machines.SetGroupVersionKind(machineKind)
	w.must(w.c.Client.List(w.ctx, machines, client.InNamespace(w.ns)))
	took, done := map[string]time.Duration{}, make(chan struct{})
	begin := time.Now()
	follower := w.c.Follow(w.t, machines, func(kind watch.EventType, object client.Object) {
		m, ok := object.(*unstructured.Unstructured)
		if !ok || m.GetUID() != p.alone.GetUID() && m.GetUID() != p.behind.GetUID() {
			return
		}
		if _, known := took[m.GetName()]; known || kind != watch.Deleted && !isDrained(m) {
			return
		}
		took[m.GetName()] = time.Since(begin)
		if len(took) == 2 {
			close(done)
		}
	}, client.InNamespace(w.ns))
	for _, m := range p.both() {
		order(m)
	}
	patience.Receive(w.t, "the end of both drains", done)
	follower.Stop(w.t)
	alone, behind := took[p.alone.GetName()], took[p.behind.GetName()]
	w.t.Logf("drained by Cluster API alone after %.1f s, behind the bridge after %.1f s", alone.Seconds(), behind.Seconds())
	if behind > alone+2*oneLook {
		w.t.Errorf("drained behind the bridge after %s, by Cluster API alone after %s", behind, alone)
	}
}
