package capi

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
)

// mayWriteMachines is all that some authors may.
var mayWriteMachines = rbacv1.PolicyRule{
	APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machines", "machines/status", "clusters"}, Verbs: []string{"*"},
}

// Who may write Machines has the manager drain no node of somebody else, whatever the
// Machine says of itself: the name of the node, its providerID, that it waits.
func TestLongMachineThatClaimsAForeignNode(t *testing.T) {
	w, _ := bareWorld(t)
	node := w.bareNode(w.ns+"-victim", "sandbox:///victim", "infra", "worker")
	_, attacker := w.c.User(t, mayWriteMachines)
	for _, name := range []string{"worker", "other"} {
		forged := newMachine(w.ns, name, "sandbox:///victim")
		w.must(attacker.Create(w.ctx, forged))
		w.waitsAtHooks(attacker, forged, node.Name)
		// It is taken for a node of another cluster, which is reached by a Secret of the
		// Machine's namespace only.
		w.awaitEvent(forged, v1alpha1.EventBridgeWaiting, "bind the ClusterRole ebbtide-kubeconfigs")
		if all := w.maintenances(); len(all) > 0 || w.isCordoned(node.Name) || !hooked(w.now(forged)) {
			t.Errorf("Machine %s: maintenances %v, cordoned: %v, hooked: %v", name, all, w.isCordoned(node.Name), hooked(w.now(forged)))
		}
		w.letGoOf(forged)
	}
}

// A NodeMaintenance that somebody has made under the name that the manager would give it
// keeps the Machine waiting, is named, and is not touched, also when the node is gone.
func TestLongForgedMaintenanceOfABridge(t *testing.T) {
	w, _ := bareWorld(t)
	node := w.bareNode(w.ns+"-worker", "sandbox:///worker", w.ns, "worker")
	made := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: core.MaintenanceName(core.ClusterAPI, w.ns, "worker")}}
	made.Spec = v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageIdle, NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}}},
	}}}
	_, attacker := w.c.User(t, rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"nodemaintenances"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}})
	w.must(attacker.Create(w.ctx, made))
	t.Cleanup(func() { _ = w.c.Client.Delete(w.ctx, made) })
	machine := newMachine(w.ns, "worker", "sandbox:///worker")
	w.create(machine)
	w.waitsAtHooks(w.c.Client, machine, node.Name)

	w.awaitEvent(machine, v1alpha1.EventBridgeWaiting, "waits: NodeMaintenance "+made.Name+" is not for "+node.Name+"; delete it")
	if all := w.maintenances(); !slices.Equal(all, []string{made.Name + " Idle"}) || w.isCordoned(node.Name) || !hooked(w.now(machine)) {
		t.Errorf("maintenances %v, cordoned: %v, hooked: %v", all, w.isCordoned(node.Name), hooked(w.now(machine)))
	}
	w.must(w.c.Client.Delete(w.ctx, made))
	w.awaitEvent(machine, v1alpha1.EventBridgeDone, node.Name+" is drained; the hook is removed")
	w.letGoOf(machine)
	w.delete(node)
	w.awaitNoMaintenance("worker")
}

// A node that says that it is of a Machine is drained for it only if the Machine says so,
// too: who has a node of the cluster cannot have it taken for another one.
func TestLongNodeThatNamesAForeignMachine(t *testing.T) {
	w, _ := bareWorld(t)
	node := w.bareNode(w.ns+"-worker", "sandbox:///worker", w.ns, "worker")
	rogue := w.bareNode(w.ns+"-rogue", "sandbox:///rogue", "", "")
	_, attacker := w.c.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: []string{rogue.Name}, Verbs: []string{"patch"}})
	machine := newMachine(w.ns, "worker", "sandbox:///worker")
	w.create(machine)
	w.must(attacker.Patch(w.ctx, rogue, mergePatch(`{"metadata":{"annotations":{
		"cluster.x-k8s.io/machine":"worker","cluster.x-k8s.io/cluster-name":"prod","cluster.x-k8s.io/cluster-namespace":"`+w.ns+`"}}}`)))
	if err := attacker.Patch(w.ctx, rogue, mergePatch(`{"spec":{"providerID":"sandbox:///worker"}}`)); err == nil || !strings.Contains(err.Error(), "providerID") {
		t.Errorf("a node can be given another providerID: %v", err)
	}
	w.waitsAtHooks(w.c.Client, machine, node.Name)
	w.awaitEvent(machine, v1alpha1.EventBridgeDone, node.Name+" is drained; the hook is removed")
	if all := w.maintenances(); len(all) != 1 || w.isCordoned(rogue.Name) || !w.isCordoned(node.Name) {
		t.Errorf("maintenances %v, the rogue node is cordoned: %v, that of the Machine: %v", all, w.isCordoned(rogue.Name), w.isCordoned(node.Name))
	}
	w.letGoOf(machine)
	w.must(client.IgnoreNotFound(w.c.Client.Delete(w.ctx, node)))
	w.awaitNoMaintenance("worker")
}

// The hook of another Ebbtide, which has another value, is neither taken off nor replaced,
// and the Machine is told of it.
func TestLongTheHookOfAnotherEbbtide(t *testing.T) {
	w, _ := bareWorld(t)
	node := w.bareNode(w.ns+"-worker", "sandbox:///worker", w.ns, "worker")
	machine := newMachine(w.ns, "worker", "sandbox:///worker")
	machine.SetAnnotations(map[string]string{hook: "other-ebbtide"})
	w.create(machine)
	w.waitsAtHooks(w.c.Client, machine, node.Name)
	w.awaitEvent(machine, v1alpha1.EventBridgeSkipped, "another tool has set the hook "+hook+" on the Machine")
	if got := w.now(machine).GetAnnotations()[hook]; got != "other-ebbtide" || w.isCordoned(node.Name) {
		t.Errorf("the hook is %q, and the node is cordoned: %v", got, w.isCordoned(node.Name))
	}
	w.letGoOf(machine)
}
