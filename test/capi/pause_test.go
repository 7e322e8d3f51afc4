package capi

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// paused pauses a Machine of Cluster API.
const paused = "cluster.x-k8s.io/paused"

// A Machine is paused while a budget holds its drain: no pod is asked to leave, also when the
// budget opens, and the node stays cordoned. After the pause the drain goes on.
func TestLongAPauseStopsADrain(t *testing.T) {
	t.Parallel()
	w, victim := blocked(t, bridged)
	w.delete(victim)
	w.awaitEvent(victim, v1alpha1.EventBridgeDraining, "1 pod left")
	w.awaitEvacuations(1)

	w.annotate(victim, paused, "true")
	w.awaitEvent(victim, v1alpha1.EventBridgeWaiting, "waits: the Machine or its Cluster is paused")
	w.awaitEvacuations(0)
	w.letGo()
	for _, pod := range w.podsOn(nodeOf(victim)) {
		if pod.DeletionTimestamp != nil {
			t.Errorf("pod %s was evicted during the pause", pod.Name)
		}
	}
	node := &corev1.Node{}
	w.must(w.at.Client.Get(w.ctx, client.ObjectKey{Name: nodeOf(victim)}, node))
	if !node.Spec.Unschedulable {
		t.Error("the node is not cordoned during the pause")
	}

	w.annotate(victim, paused, "")
	w.awaitEvent(victim, v1alpha1.EventBridgeDone, "is drained; the hook is removed")
	w.awaitGone(victim)
	w.awaitNoMaintenance(victim.GetName())
}

// awaitEvacuations waits until so many pods of the story are asked to leave.
func (w *world) awaitEvacuations(count int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d Evacuations", count), func() (string, bool) {
		list := &v1alpha1.EvacuationList{}
		err := w.at.Client.List(w.ctx, list, client.InNamespace(w.app))
		return fmt.Sprint(list.Items, err), err == nil && len(list.Items) == count
	})
}
