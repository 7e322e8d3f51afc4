package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// NodeAnnotation with the value "fake" marks the nodes that kwok plays.
const NodeAnnotation = "kwok.x-k8s.io/node"

// names returns the names of the first n nodes.
func (c *Cluster) names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", c.spec.NodePrefix, i+1)
	}
	return names
}

// CreateNodes creates kwok nodes with these labels, besides the host name, and
// waits until pods can be scheduled to them. Each has 64 cores, 256 GiB of
// memory and room for 1,000 pods.
func (c *Cluster) CreateNodes(ctx context.Context, names []string, labels map[string]string) error {
	for _, name := range names {
		if err := c.Client.Create(ctx, NewNode(name, labels)); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
	}
	for _, name := range names {
		if err := c.waitSchedulable(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// NewNode is a node that kwok plays as soon as it is created. The controller
// manager attaches the volumes of its pods.
func NewNode(name string, labels map[string]string) *corev1.Node {
	all := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		"type":                 "kwok",
	}
	maps.Copy(all, labels)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: all,
			Annotations: map[string]string{
				NodeAnnotation: "fake",
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources, NodeInfo: corev1.NodeSystemInfo{BootID: string(uuid.NewUUID())},
		},
	}
}

// waitSchedulable waits until a node is ready and rid of its first taints.
func (c *Cluster) waitSchedulable(ctx context.Context, name string) error {
	node := &corev1.Node{}
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, startWithin, true, func(ctx context.Context) (bool, error) {
		lastErr = c.Client.Get(ctx, clientKey(name), node)
		return lastErr == nil && podclass.NodeReady(node) && len(node.Spec.Taints) == 0, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("node %s is not ready: conditions %v, taints %v: %w",
			name, node.Status.Conditions, node.Spec.Taints, err), lastErr)
	}
	return nil
}

// StopNode has a node stop to answer, for good: it is Ready=Unknown. Pods that are
// deleted still go, as kwok knows no better; TerminateAfter holds them.
func StopNode(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	// Without the annotation kwok does not make the node ready again.
	unplayed := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, NodeAnnotation)
	if err := c.Patch(ctx, node, client.RawPatch(types.MergePatchType, unplayed)); err != nil {
		return fmt.Errorf("stop node: %w", err)
	}
	unknown, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Now(),
		Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.",
	}}}})
	if err != nil {
		return fmt.Errorf("stop node: %w", err)
	}
	if err := c.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, unknown)); err != nil {
		return fmt.Errorf("stop node: %w", err)
	}
	return nil
}

func clientKey(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
