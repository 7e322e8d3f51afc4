package uninstall

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
)

// keeps is an agent that says of a static pod that it is in this state.
func keeps(t *testing.T, c *cluster.Cluster, node string, state v1alpha1.StaticPodState) *v1alpha1.NodeAgent {
	t.Helper()
	agent := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := c.Client.Create(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Client.Delete(context.WithoutCancel(t.Context()), agent); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	agent.Status.ManifestDir = "/etc/kubernetes/manifests"
	agent.Status.StaticPods = []v1alpha1.StaticPod{{Namespace: "kube-system", Name: "proxy-" + node, State: state, MaintenanceName: "kernel-update"}}
	if err := c.Client.Status().Update(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	return agent
}

// Without its agents nobody would bring static pods back, not even after a reboot.
func TestNothingIsUninstalledWhileStaticPodsAreKeptAway(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	hook := uninstall.Hook{Client: c.Client, Namespace: namespaceOfManagers(t, c), Mode: uninstall.Refuse, Timeout: time.Minute, Out: &bytes.Buffer{}}
	installDoor(t, c)
	seven, nine := keeps(t, c, "node-7", v1alpha1.StaticPodHeld), keeps(t, c, "node-9", v1alpha1.StaticPodHolding)
	keeps(t, c, "node-8", v1alpha1.StaticPodRunning)

	err := hook.Run(t.Context())

	const want = "Ebbtide is in use, and uninstalling it would leave behind:\n" +
		"static pods are down on 2 nodes (node-7, node-9): complete kernel-update first. If an agent does not answer, run ebbtide-agent restore on the node and delete its NodeAgent"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	assertOpen(t, c, hook.Namespace)
	hook.Mode, hook.Timeout = uninstall.Complete, 5*time.Second
	if err := hook.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "still in progress (1): static pods are down on 2 nodes (node-7, node-9): complete kernel-update first") {
		t.Errorf("got %v, want it to wait for them until its time is up", err)
	}
	assertOpen(t, c, hook.Namespace)

	if err := c.Client.Delete(t.Context(), nine); err != nil {
		t.Fatal(err)
	}
	hook.Timeout = time.Minute
	done := make(chan error)
	go func() { done <- hook.Run(context.WithoutCancel(t.Context())) }()
	seven.Status.StaticPods[0].State = v1alpha1.StaticPodRunning
	if err := c.Client.Status().Update(t.Context(), seven); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the pods are back, and it is refused: %v", err)
	}
}

// Where no manager and no agent is left, release says how the pods come back.
func TestReleaseRemovesNodeAgents(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	agent := keeps(t, c, "node-5", v1alpha1.StaticPodHeld)
	out := &bytes.Buffer{}
	if err := (uninstall.Releaser{Client: c.Client, Now: time.Now, Yes: true, Out: out, Again: "release"}).Run(t.Context()); err != nil {
		t.Fatalf("release: %v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "node-5") || !strings.Contains(out.String(), "for f in /etc/kubernetes/manifests/.*.ebbtide-held; do") {
		t.Errorf("nobody learns how the pods of node-5 come back:\n%s", out)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(agent), agent); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("its NodeAgent is still there: %v", err)
	}
}
