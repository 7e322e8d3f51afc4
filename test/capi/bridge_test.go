package capi

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
)

// optedIn has Ebbtide drain for all Machines of a Cluster.
var optedIn = map[string]string{v1alpha1.DrainOptLabel: "true"}

// One Machine is deleted: Ebbtide drains behind its hook, Cluster API finds nothing left to
// drain and removes the machine, and nothing of Ebbtide is left.
func TestAMachineIsDrainedByEbbtide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bridged)
	w.cluster("prod", optedIn)
	w.deployment("workers", "prod", 3)
	w.awaitHooks(3)
	w.application("web", 6, "")
	victim := w.machines()[0]
	node := nodeOf(victim)

	w.delete(victim)

	w.awaitEvent(victim, v1alpha1.EventBridgeDone, node+" is drained; the hook is removed")
	w.awaitGone(victim)
	w.awaitRunning(3)
	w.awaitHooks(3)
	w.awaitApplication("web", 6)
	if events := strings.Join(w.events(victim), "\n"); strings.Contains(events, "SuccessfulDrainNode") {
		t.Errorf("Cluster API has drained, too:\n%s", events)
	}
	w.awaitNoMaintenance(victim.GetName())
}

// awaitNoMaintenance waits until the maintenance for a Machine is gone.
func (w *world) awaitNoMaintenance(machine string) {
	w.t.Helper()
	name := core.MaintenanceName(w.ns, machine)
	w.await("NodeMaintenance "+name+" to be gone", func() (string, bool) {
		m := &v1alpha1.NodeMaintenance{}
		err := w.c.Client.Get(w.ctx, client.ObjectKey{Name: name}, m)
		return fmt.Sprintf("%+v", *m), client.IgnoreNotFound(err) == nil && err != nil
	})
}
