package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// memoryLimit is that of the pod below, in bytes.
const memoryLimit = "67108864"

// limited is a Deployment of one pod with limits, which its cgroup has to enforce.
const limited = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: limited}
spec:
  selector: {matchLabels: {app: limited}}
  template:
    metadata: {labels: {app: limited}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: app, image: ` + appImage + `, resources: {limits: {cpu: 100m, memory: ` + memoryLimit + `}}}
`

// The cgroups of a node follow its pods, on hosts with cgroup v1, hybrid or v2 alone: they limit
// a pod, they go with it when the node is drained, and all of them go with the power.
func TestLongCgroupsOfANodeFollowItsPods(t *testing.T) {
	// Its manager would withdraw the Evacuations that stories of static pods make by hand.
	c := cluster.Start(t, cluster.Spec{RealNodes: 1, Alone: true})
	node, namespace := c.Nodes[0], c.Namespace(t)
	importApp(t, c)
	c.StartManager(t)
	c.Apply(t, namespace, limited)
	waitAvailable(t, c, namespace, "limited")
	rack := rackOf(t, c, node)
	if got := memoryLimits(t, rack, node); !slices.Contains(got, memoryLimit) {
		t.Errorf("cgroups of the node have memory limits %v, want %s among them", got, memoryLimit)
	}

	drainNode(t, c, node)
	patience.Eventually(t, "the cgroups of the pod to be gone", func(context.Context) (string, bool) {
		limits := memoryLimits(t, rack, node)
		return fmt.Sprint(limits), !slices.Contains(limits, memoryLimit)
	})
	if left := len(groupsOf(t, rack, node)); left == 0 {
		t.Error("the node has no cgroups while it is on")
	}
	c.PowerOff(t, node)
	if left := slices.Sorted(maps.Keys(groupsOf(t, rack, node))); len(left) > 0 {
		t.Errorf("cgroups of the node are left: %v", left)
	}
	c.PowerOn(t, node)
}

// memoryLimits returns what limits the memory of the cgroups of a node.
func memoryLimits(t *testing.T, rack, node string) (limits []string) {
	t.Helper()
	for dir := range groupsOf(t, rack, node) {
		for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
			// A group of another hierarchy of v1 has none, and one that is gone has none any more.
			if data, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				limits = append(limits, strings.TrimSpace(string(data)))
			}
		}
	}
	return limits
}

// drainNode returns when a maintenance has drained a node. The maintenance stays until the test ends.
func drainNode(t *testing.T, c *cluster.Cluster, node string) {
	t.Helper()
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "cgroups"}, Spec: v1alpha1.NodeMaintenanceSpec{
		Reason: "a story", Stage: v1alpha1.StageDrain,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}}},
	}}
	if err := c.Client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Client.Delete(context.Background(), m)); err != nil {
			t.Error(err)
		}
	})
	begin := time.Now()
	patience.Eventually(t, "node "+node+" to be drained", func(ctx context.Context) (string, bool) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(m), m)
		return fmt.Sprintf("%s %+v %v", m.Status.Summary, m.Status.NodeStatuses, err), meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	})
	t.Logf("node %s was drained after %s", node, time.Since(begin).Round(10*time.Millisecond))
}
