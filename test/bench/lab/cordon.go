package lab

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UntilCordoned returns when all nodes of the load are cordoned.
func (l *Lab) UntilCordoned(ctx context.Context, load *Load) error {
	changes, err := l.Client.Watch(ctx, &corev1.NodeList{}, client.MatchingLabels(load.labels()))
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer changes.Stop()
	open := map[string]bool{}
	for _, name := range load.Nodes {
		open[name] = true
	}
	for len(open) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d nodes are not cordoned: %w", len(open), ctx.Err())
		case change, more := <-changes.ResultChan():
			if !more {
				return errors.Join(fmt.Errorf("the watch of the nodes ended with %d not cordoned", len(open)), ctx.Err())
			}
			if node, isNode := change.Object.(*corev1.Node); isNode && node.Spec.Unschedulable {
				delete(open, node.Name)
			}
		}
	}
	return nil
}
