package lab

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UntilCordoned returns when all nodes of the load are cordoned.
func (l *Lab) UntilCordoned(ctx context.Context, load *Load) error {
	open := map[string]bool{}
	for _, name := range load.Nodes {
		open[name] = true
	}
	nodes := &corev1.NodeList{}
	changes, err := l.watch(ctx, nodes, client.MatchingLabels(load.labels()))
	if err != nil {
		return err
	}
	defer changes.stop()
	see := func(node *corev1.Node) {
		if node.Spec.Unschedulable {
			delete(open, node.Name)
		}
	}
	for i := range nodes.Items {
		see(&nodes.Items[i])
	}
	for len(open) > 0 {
		change, err := changes.next(ctx)
		if err != nil {
			return fmt.Errorf("%d nodes are not cordoned: %w", len(open), err)
		}
		if node, isNode := change.Object.(*corev1.Node); isNode {
			see(node)
		}
	}
	return nil
}
