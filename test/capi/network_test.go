package capi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// While the cluster of its node does not answer a Machine keeps its hook and says why, those
// of other clusters go on, and the time of its drain ends that: for a cluster that refuses
// connections, and for one that takes them and never says a word.
func TestLongAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]struct {
		how   func(*testing.T, *world, *cluster.Proxy)
		words string
	}{
		"it refuses": {refuse, "connection refused"},
		"it hangs":   {func(_ *testing.T, _ *world, p *cluster.Proxy) { p.Hang() }, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bridged)
			w.elsewhere(cluster.Start(t, cluster.Spec{Workload: true}))
			proxy := w.at.Proxy(t)
			w.kubeconfig = proxy.Kubeconfig(t)
			w.bindKubeconfigs()
			w.pool(1, 0, "deletion: {nodeDrainTimeoutSeconds: 45}")
			victim := w.machines()[0]
			cut.how(t, w, proxy)
			w.delete(victim)

			w.awaitEvent(victim, v1alpha1.EventBridgeWaiting, cut.words)
			if m := w.now(victim); !hooked(m) || !strings.HasPrefix(deleting(m), "WaitingForPreDrainHook") {
				t.Errorf("hooked: %v, %s", hooked(m), deleting(m))
			}
			goOn(t)
			w.awaitEvent(victim, v1alpha1.EventBridgeGivenUp, "nodeDrainTimeoutSeconds (45) is over with an unknown number of pods left; the hook is removed and Cluster API goes on")
			if hooked(w.now(victim)) {
				t.Error("the hook is still there")
			}
		})
	}
}

// goOn has a Machine in the cluster of Ebbtide be drained meanwhile.
func goOn(t *testing.T) {
	t.Helper()
	w := newPool(t, bridged, 1, 0)
	victim := w.machines()[0]
	w.delete(victim)
	w.awaitEvent(victim, v1alpha1.EventBridgeDone, "is drained; the hook is removed")
}

// refuse leads the kubeconfig of the Cluster to a port at which nobody listens.
func refuse(t *testing.T, w *world, p *cluster.Proxy) {
	t.Helper()
	nowhere := fmt.Sprintf("https://127.0.0.1:%d", cluster.FreePort(t))
	secret := &corev1.Secret{}
	w.must(w.c.Client.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "prod-kubeconfig"}, secret))
	secret.Data["value"] = []byte(strings.ReplaceAll(string(w.kubeconfig), p.URL(), nowhere))
	w.must(w.c.Client.Update(w.ctx, secret))
}

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
