// Package node has the stories on real nodes: kubelets, containers and kube-proxies, with a
// program of our own in the pods. They need Linux and root.
package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/image"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

func TestMain(m *testing.M) {
	if hold := os.Getenv(holderEnv); hold != "" {
		holdRack(hold)
	}
	os.Exit(cluster.Main(m))
}

// bare is a cluster of real nodes that nothing of Ebbtide is in.
var bare = cluster.Spec{RealNodes: 3, Workload: true}

// appImage is the program of the folder app.
const appImage = "sandbox.ebbtide.dev/app:1"

// importApp gives the nodes the image of the application.
func importApp(t testing.TB, c *cluster.Cluster) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "app.tar")
	app := image.Image{Name: appImage, Binaries: built(t, "app")}
	if err := app.WriteArchive(archive, image.AMD64); err != nil {
		t.Fatal(err)
	}
	c.Import(t, archive)
}

func getNode(ctx context.Context, c *cluster.Cluster, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, c.Client.Get(ctx, client.ObjectKey{Name: name}, node)
}

// waitReady waits until the kubelet of another boot than this one has said that the node is
// Ready, and returns its boot.
func waitReady(t *testing.T, c *cluster.Cluster, name, notBoot string) (boot string) {
	t.Helper()
	patience.Eventually(t, "node "+name+" to be Ready again", func(ctx context.Context) (string, bool) {
		node, err := getNode(ctx, c, name)
		boot = node.Status.NodeInfo.BootID
		return fmt.Sprintf("boot %s, conditions %v, %v", boot, node.Status.Conditions, err), err == nil && boot != notBoot && isReady(node)
	})
	return boot
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestLongEachNodeIsAMachineOfItsOwn(t *testing.T) {
	c := cluster.Start(t, bare)
	hosts, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{strings.TrimSpace(string(hosts)): "the host"}
	for _, name := range c.Nodes {
		node, err := getNode(t.Context(), c, name)
		if err != nil {
			t.Fatal(err)
		}
		info := node.Status.NodeInfo
		if !isReady(node) || !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://2.") {
			t.Errorf("node %s is ready: %v, with runtime %q; want a ready one with containerd 2", name, isReady(node), info.ContainerRuntimeVersion)
		}
		for _, id := range []string{info.BootID, info.MachineID} {
			if other, ok := seen[id]; ok || id == "" {
				t.Errorf("node %s has an ID of %q, which is that of %q", name, id, other)
			}
			seen[id] = name
		}
	}
}

func TestLongEachStartOfANodeIsABoot(t *testing.T) {
	c := cluster.Start(t, bare)
	name := c.Nodes[2]
	before, err := getNode(t.Context(), c, name)
	if err != nil {
		t.Fatal(err)
	}
	c.PowerOff(t, name)
	begin := time.Now()
	c.PowerOn(t, name)
	boot := waitReady(t, c, name, before.Status.NodeInfo.BootID)
	t.Logf("%s was Ready %s after it was switched on", name, time.Since(begin).Round(10*time.Millisecond))

	after, err := getNode(t.Context(), c, name)
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || after.Status.NodeInfo.MachineID != before.Status.NodeInfo.MachineID {
		t.Errorf("node %s is another one after a boot: UID %s → %s, machine %s → %s", name, before.UID, after.UID,
			before.Status.NodeInfo.MachineID, after.Status.NodeInfo.MachineID)
	}
	patience.Eventually(t, "the event that node "+name+" was rebooted", func(ctx context.Context) (string, bool) {
		events := &corev1.EventList{}
		err := c.Client.List(ctx, events, client.MatchingFields{"reason": "Rebooted", "involvedObject.name": name})
		var messages []string
		for _, event := range events.Items {
			messages = append(messages, event.Message)
		}
		return fmt.Sprint(messages, err), strings.Contains(strings.Join(messages, "\n"), "boot id: "+boot)
	})
}

// What is asked of nodes that are not there, or are on, is refused by name.
func TestLongThePowerOfOtherNodesIsNoSwitch(t *testing.T) {
	c := cluster.Start(t, bare)
	for want, err := range map[string]error{
		`there is no real node "node-4"; choose one of node-1, node-2, node-3`: c.SwitchOn(t, "node-4"),
		"machine node-1 is on already":                                         c.SwitchOn(t, "node-1"),
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}
