package capi

import (
	"os"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Two managers have the same bridge, and one leads. When that one dies in the middle of a
// drain the other one goes on; nothing is done twice.
func TestLongTwoManagersHaveOneBridge(t *testing.T) {
	t.Parallel()
	spec := cluster.Spec{Bridges: "cluster-api", Replicas: true}
	w := newWorld(t, spec)
	first := w.c.StartReplica(t)
	w.await("the first manager to lead", func() (string, bool) { return first.Tail(1), first.Leads(t) })
	second := w.c.StartReplica(t)
	w.pool(1, 1)
	w.never("web")
	victim := w.machines()[0]
	w.delete(victim)
	w.awaitEvent(victim, v1alpha1.EventBridgeDraining, "1 pod left")
	if acted := second.Acted(t, 0); len(acted) > 0 {
		t.Errorf("the manager that does not lead has acted: %v", acted)
	}
	before := w.maintenances()

	first.Kill()
	w.letGo()
	w.awaitEvent(victim, v1alpha1.EventBridgeDone, "is drained; the hook is removed")
	if now := w.maintenances(); len(before) != 1 || len(now) > 1 {
		t.Errorf("NodeMaintenances %v, and then %v", before, now)
	}
	w.awaitGone(victim)
	w.awaitNoMaintenance(victim.GetName())
}

// kubeconfigOf is what the Cluster's Secret has.
func (w *world) kubeconfigOf() []byte {
	w.t.Helper()
	if w.kubeconfig != nil {
		return w.kubeconfig
	}
	kubeconfig, err := os.ReadFile(w.at.Kubeconfig)
	w.must(err)
	return kubeconfig
}
