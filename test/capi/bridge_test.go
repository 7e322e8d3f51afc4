package capi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
)

// optedIn has Ebbtide drain for all Machines of a Cluster.
var optedIn = map[string]string{v1alpha1.DrainOptLabel: "true"}

// One Machine is deleted: Ebbtide drains behind its hook, and takes it off in the same write
// that tells Cluster API not to drain. So Cluster API removes the machine without a drain of
// its own, and nothing of Ebbtide is left.
func TestLongAMachineIsDrainedByEbbtide(t *testing.T) {
	t.Parallel()
	w := newPool(t, bridged, 3, 6)
	victim := w.machines()[0]
	node := nodeOf(victim)
	pods := w.podsOn(node)
	if len(pods) == 0 {
		t.Fatal("no pod is on the node of the Machine")
	}
	seen := w.followMachine(victim.GetName())

	w.delete(victim)

	w.awaitEvent(victim, v1alpha1.EventBridgeDone, node+" is drained; the hook is removed")
	w.awaitGone(victim)
	for _, state := range seen() {
		if state != "hooked" && state != "excluded" {
			t.Errorf("the Machine was seen %s, want it hooked until it is excluded from drains", state)
		}
	}
	for i := range pods {
		if err := w.at.Client.Get(w.ctx, client.ObjectKeyFromObject(&pods[i]), &corev1.Pod{}); !apierrors.IsNotFound(err) {
			t.Errorf("pod %s is still there: %v", pods[i].Name, err)
		}
	}
	w.awaitRunning(3)
	w.awaitHooks(3)
	w.awaitApplication("web", 6)
	if events := strings.Join(w.events(victim), "\n"); strings.Contains(events, "SuccessfulDrainNode") {
		t.Errorf("Cluster API has drained, too:\n%s", events)
	}
	w.awaitNoMaintenance(victim.GetName())
}

// followMachine returns what was seen of a Machine, in each of its versions from now on: that
// it bears the hook, that it is excluded from drains, both, or nothing of it.
func (w *world) followMachine(name string) (seen func() []string) {
	w.t.Helper()
	machines := &unstructured.UnstructuredList{}
	machines.SetGroupVersionKind(machineKind)
	w.must(w.c.Client.List(w.ctx, machines, client.InNamespace(w.ns)))
	var states []string
	follower := w.c.Follow(w.t, machines, func(_ watch.EventType, object client.Object) {
		if object.GetName() != name {
			return
		}
		annotations := object.GetAnnotations()
		_, has := annotations[hook]
		_, excluded := annotations[v1alpha1.ExcludeNodeDrainingAnnotation]
		states = append(states, map[[2]bool]string{
			{true, false}: "hooked", {false, true}: "excluded", {true, true}: "hooked and excluded", {}: "without hook",
		}[[2]bool{has, excluded}])
	}, client.InNamespace(w.ns))
	return func() []string {
		follower.Stop(w.t)
		if !slices.Contains(states, "excluded") {
			w.t.Errorf("the Machine was seen %v, and never excluded from drains", states)
		}
		return states
	}
}

// awaitNoMaintenance waits until the maintenance for a Machine is gone.
func (w *world) awaitNoMaintenance(machine string) {
	w.t.Helper()
	name := core.MaintenanceName(core.ClusterAPI, w.ns, machine)
	w.await("NodeMaintenance "+name+" to be gone", func() (string, bool) {
		m := &v1alpha1.NodeMaintenance{}
		err := w.c.Client.Get(w.ctx, client.ObjectKey{Name: name}, m)
		return fmt.Sprintf("%+v", *m), client.IgnoreNotFound(err) == nil && err != nil
	})
}
