package capi

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// never has no pod of an application be evicted.
func (w *world) never(name string) {
	w.t.Helper()
	none := intstr.FromInt32(0)
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	})
}

// letGo has the budget of the application allow evictions.
func (w *world) letGo() {
	w.t.Helper()
	w.delete(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}})
}

// A pool of three is rolled out under an application with a single replica that surges: it
// is there all the time.
func TestLongAnApplicationStaysUpWhileItsPoolIsRolledOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bridged)
	if least := w.rollOut(optedIn, 3); least < 1 {
		t.Errorf("the application had %d endpoints", least)
	}
}

// The same without Ebbtide, so that one knows what the other story shows.
func TestLongWithoutEbbtideItIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, alone)
	if least := w.rollOut(nil, 0); least > 0 {
		t.Errorf("the application had %d endpoints at least, so that the other story shows nothing", least)
	}
}

// rollOut replaces all machines of a pool, and returns how few endpoints the application had.
func (w *world) rollOut(labels map[string]string, hooks int) (least int) {
	w.t.Helper()
	w.cluster("prod", labels)
	w.deployment("workers", "prod", 3)
	w.awaitHooks(hooks)
	w.application("web", 1, surges)
	before := w.machines()
	endpoints := w.at.WatchEndpoints(w.t, client.ObjectKey{Namespace: w.ns, Name: "web"})
	d := w.named(deploymentKind, "workers")
	w.must(w.c.Client.Patch(w.ctx, d, mergePatch(`{"spec":{"template":{"spec":{"version":"v1.37.2"}}}}`)))
	for _, machine := range before {
		w.awaitGone(machine)
	}
	w.awaitRunning(3)
	w.awaitHooks(hooks)
	w.awaitApplication("web", 1)
	least, history := endpoints.Stop(w.t)
	w.t.Logf("endpoints: %s", history)
	return least
}

// now reads a Machine.
func (w *world) now(machine *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	m := kindOf(machineKind)
	w.must(w.c.Client.Get(w.ctx, client.ObjectKeyFromObject(machine), m))
	return m
}

// The time that the Machine has for its drain ends ours, too, and Cluster API begins no other
// drain, which would have as much time again.
func TestLongTheTimeOfADrainIsOver(t *testing.T) {
	t.Parallel()
	w, p := blockedPair(t, bridged, "deletion: {nodeDrainTimeoutSeconds: 60}")
	seen := w.followMachine(p.behind.GetName())
	w.race(p, func(m *unstructured.Unstructured) { w.delete(m) })
	w.awaitEvent(p.behind, v1alpha1.EventBridgeGivenUp, "nodeDrainTimeoutSeconds (60) is over with 1 pod left; the hook is removed and Cluster API goes on")
	w.awaitGone(p.behind)
	seen()
	w.awaitNoMaintenance(p.behind.GetName())
}

// A pool is scaled down, and one machine of it is remediated.
func TestLongAPoolIsScaledDownAndRemediated(t *testing.T) {
	t.Parallel()
	w := newPool(t, bridged, 3, 6)
	d := w.named(deploymentKind, "workers")
	w.must(w.c.Client.Patch(w.ctx, d, mergePatch(`{"spec":{"replicas":2}}`)))
	left := w.awaitRunning(2)
	w.await("two Machines", func() (string, bool) { return "", len(w.machines()) == 2 })
	w.awaitApplication("web", 6)

	w.c.Apply(t, w.ns, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: workers}
spec:
  clusterName: prod
  selector: {matchLabels: {pool: workers}}
  checks: {unhealthyNodeConditions: [{type: Broken, status: "True", timeoutSeconds: 1}]}
`)
	w.annotate(left[0], "cluster.x-k8s.io/remediate-machine", "true")
	w.awaitEvent(left[0], v1alpha1.EventBridgeDone, "is drained; the hook is removed")
	w.awaitGone(left[0])
	w.awaitRunning(2)
	w.awaitApplication("web", 6)
}

// Whichever write of the manager is its last, another one goes on where it has ended.
func TestLongTheManagerIsKilledAtEveryWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cluster.Spec{Bridges: "cluster-api", Tapped: true})
	w.cluster("prod", optedIn)
	var mu sync.Mutex
	seen := map[string]bool{}
	w.c.Witness(t, func(write cluster.Write) bool {
		mu.Lock()
		defer mu.Unlock()
		what := write.String()
		if !strings.Contains(what, "machines") && !strings.Contains(what, "nodemaintenances") {
			return false
		}
		kind := strings.Join(strings.Fields(what)[:2], " ")
		if seen[kind] {
			return false
		}
		seen[kind] = true
		return true
	})
	w.deployment("workers", "prod", 2)
	w.awaitHooks(2)
	w.application("web", 4, "")
	victim := w.machines()[0]
	w.delete(victim)
	w.awaitGone(victim)
	w.awaitNoMaintenance(victim.GetName())
	w.awaitRunning(2)
	w.awaitApplication("web", 4)
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 3 || w.c.Kills() < 3 {
		t.Errorf("the manager was killed %d times, at %v", w.c.Kills(), seen)
	}
	t.Logf("killed %d times, at %v", w.c.Kills(), seen)
}

// blocked is a world with one Machine whose application no budget lets go.
func blocked(t *testing.T, spec cluster.Spec, more ...string) (w *world, victim *unstructured.Unstructured) {
	t.Helper()
	w = newPool(t, spec, 1, 1, more...)
	w.never("web")
	return w, w.machines()[0]
}

// A hook that a person removes is not put on again: Cluster API goes on, and nothing lands
// on the node meanwhile.
func TestLongRemovedHookIsNotRestored(t *testing.T) {
	t.Parallel()
	w, victim := blocked(t, bridged)
	w.delete(victim)
	w.awaitEvent(victim, v1alpha1.EventBridgeDraining, "1 pod left")
	w.annotate(victim, hook, "")

	w.awaitDraining(victim)
	node := &corev1.Node{}
	w.must(w.at.Client.Get(w.ctx, client.ObjectKey{Name: nodeOf(victim)}, node))
	if !node.Spec.Unschedulable {
		t.Error("the node was given back")
	}
	w.letGo()
	w.awaitGone(victim)
	w.awaitNoMaintenance(victim.GetName())
}

// awaitDraining waits until Cluster API drains a Machine that has no hook of ours.
func (w *world) awaitDraining(machine *unstructured.Unstructured) {
	w.t.Helper()
	w.await("Cluster API to drain", func() (string, bool) {
		m := w.now(machine)
		return deleting(m), strings.HasPrefix(deleting(m), "DrainingNode") && !hooked(m)
	})
}
