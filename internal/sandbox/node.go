package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeAnnotation with the value "fake" marks the nodes that kwok plays.
const NodeAnnotation = "kwok.x-k8s.io/node"

// nodesWithin bounds how long nodes may take to become ready.
const nodesWithin = 60 * time.Second

func (c *Cluster) nodeNames() []string {
	names := make([]string, c.spec.Nodes)
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
		if err := c.Client.Create(ctx, fakeNode(name, labels)); err != nil {
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

func fakeNode(name string, labels map[string]string) *corev1.Node {
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
			Name:        name,
			Labels:      all,
			Annotations: map[string]string{NodeAnnotation: "fake"},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// waitSchedulable waits until a node is ready and rid of its first taints.
func (c *Cluster) waitSchedulable(ctx context.Context, name string) error {
	node := &corev1.Node{}
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, nodesWithin, true, func(ctx context.Context) (bool, error) {
		lastErr = c.Client.Get(ctx, clientKey(name), node)
		return lastErr == nil && ready(node) && len(node.Spec.Taints) == 0, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("node %s is not ready: conditions %v, taints %v: %w",
			name, node.Status.Conditions, node.Spec.Taints, err), lastErr)
	}
	return nil
}

func ready(node *corev1.Node) bool {
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

func clientKey(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
