package evictionrequest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// drain asks for a maintenance of the node, which ends with the test.
func (w *world) drain() *v1alpha1.NodeMaintenance {
	w.t.Helper()
	m := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage: v1alpha1.StageDrain,
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{w.cluster.Nodes[0]},
			}}}}},
		},
	}
	w.must(w.client.Create(w.ctx, m))
	w.t.Cleanup(func() { _ = w.client.Delete(w.ctx, m) })
	return m
}

func (w *world) complete(m *v1alpha1.NodeMaintenance) {
	w.t.Helper()
	w.must(w.client.Patch(w.ctx, m, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stage":"Complete"}}`))))
}

func (w *world) awaitDrained(m *v1alpha1.NodeMaintenance) {
	w.t.Helper()
	w.eventually("the node to be drained", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(m), m))
		for _, c := range m.Status.Conditions {
			if c.Type == v1alpha1.ConditionDrained && c.Status == metav1.ConditionTrue {
				return true, nil
			}
		}
		return false, m.Status
	})
}

// own is the request of NodeMaintenances for a pod, by its name alone.
func own(pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: core.NameFor(pod.UID)}}
}

// Who calls the maintenance off withdraws what it has asked, and nothing of it is left.
func TestAMaintenanceIsCalledOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0", "example.com/leader 20000")
	m := w.drain()
	e := w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	w.complete(m)
	w.awaitGone(own(pod))
	w.awaitGone(e)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		t.Errorf("the pod terminates since %s, want it left alone", pod.DeletionTimestamp)
	}
	// It may be asked again.
	second := m.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Name: w.ns + "-again"}
	second.Spec.Stage = v1alpha1.StageDrain
	w.must(w.client.Create(w.ctx, second))
	t.Cleanup(func() { _ = w.client.Delete(w.ctx, second) })
	w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
}

// Somebody who may make requests takes the name of ours, so that no responder is asked:
// then the pod is evacuated, and it is told. One who forges one of ours, for a node that
// nobody drains, has it withdrawn.
func TestSomebodyForgesARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, mallory := w.cluster.User(t,
		rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictionrequests"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	idle := w.pod("idle-0", "example.com/leader 20000")
	forged := core.New(idle)
	w.must(mallory.Create(w.ctx, forged))
	w.awaitGone(forged)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(idle), idle))
	w.must(w.client.Delete(w.ctx, idle, client.GracePeriodSeconds(0)))

	pod := w.pod("web-0", "example.com/leader 20000")
	taken := core.New(pod)
	taken.Spec.Requester = "example.com/mallory"
	taken.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
	w.must(mallory.Create(w.ctx, taken))
	m := w.drain()
	w.awaitEvent(w.ns, v1alpha1.EventEvictionRequestNameTaken, "pod web-0 is evacuated without its evictionResponders (example.com/leader)")
	w.awaitGone(pod)
	w.awaitDrained(m)
}

// The manager is killed behind each of its writes, and the pod is asked once and leaves once.
func TestLongTheManagerIsKilledWhileAMaintenanceAsks(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Tapped: true, Nodes: 1, Alone: true})
	var asked atomic.Int32
	done := make(chan struct{})
	w.cluster.Witness(t, func(write cluster.Write) bool {
		select {
		case <-done:
			return false
		default:
		}
		if !strings.Contains(write.Path, w.ns) || !strings.Contains(write.Path, "evict") && !strings.Contains(write.Path, "nodemaintenances") {
			return false
		}
		if strings.HasSuffix(write.Path, "/evictionrequests") {
			asked.Add(1)
		}
		return strings.Contains(write.Path, "/evictionrequests") && !strings.HasSuffix(write.Path, "/status")
	})
	w.cluster.StartManager(t)
	before := w.cluster.Kills()
	pod := w.pod("web-0", "example.com/leader 20000")
	m := w.drain()
	e := w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	w.complete(m)
	w.awaitGone(own(pod))
	w.awaitGone(e)
	// A write is seen before the manager is killed behind it.
	patience.Eventually(t, "the manager to be killed three times", func(context.Context) (string, bool) {
		kills := w.cluster.Kills() - before
		return fmt.Sprintf("%d times", kills), kills >= 3
	})
	close(done)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	kills := w.cluster.Kills() - before
	if asked.Load() != 1 || kills != 3 || len(w.evacuations()) != 0 || pod.DeletionTimestamp != nil {
		t.Errorf("the pod was asked %d times while the manager was killed %d times, and has the Evacuations %v, want it asked once, with 3 kills: behind the request, its withdrawal, its deletion",
			asked.Load(), kills, w.evacuations())
	}
}
