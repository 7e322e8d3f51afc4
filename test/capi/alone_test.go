package capi

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The test bed is known to be real: without Ebbtide, Cluster API makes three machines,
// drains the node of one that is deleted, and makes another one.
func TestLongClusterAPIDrainsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, alone)
	w.cluster("prod", nil)
	w.deployment("workers", "prod", 3)
	w.application("web", 6, "")
	victim := w.machines()[0]
	pods := w.podsOn(nodeOf(victim))
	if len(pods) == 0 {
		t.Fatal("no pod is on the node of the Machine")
	}

	w.delete(victim)

	w.awaitGone(victim)
	w.awaitRunning(3)
	if events := strings.Join(w.events(victim), "\n"); !strings.Contains(events, "SuccessfulDrainNode") || strings.Contains(events, "Bridge") {
		t.Errorf("Cluster API has not said that it has drained the node, or Ebbtide has:\n%s", events)
	}
	w.awaitApplication("web", 6)
	for _, pod := range pods {
		if err := w.at.Client.Get(w.ctx, client.ObjectKeyFromObject(&pod), &corev1.Pod{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("pod %s is still there (%v)", pod.Name, err)
		}
	}
}
