package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// ending is a maintenance that is completed for some or all nodes.
type ending struct {
	*v1alpha1.NodeMaintenance
	// nodes are completed before the others; empty completes the maintenance.
	nodes []string
}

// ending reads a maintenance and decides whether it is completed as a whole.
//
// Errors: it does not select a node that names it.
func (o *completeOptions) ending(ctx context.Context, name string) (one ending, err error) {
	if one.NodeMaintenance, err = o.maintenance(ctx, name); err != nil {
		return one, err
	}
	rest := selectedBy(one.NodeMaintenance, o.cluster)
	for _, node := range o.named[name] {
		at := slices.Index(rest, node)
		switch {
		case at >= 0:
			rest = slices.Delete(rest, at, at+1)
		case !slices.Contains(one.Spec.CompletedNodes, v1alpha1.NodeReference{Name: node}):
			return one, fmt.Errorf("node %q names NodeMaintenance %s as its holder, but that does not select the node. Complete the maintenance with\n  %s",
				node, name, o.command("complete nodemaintenance/%s", name))
		}
	}
	if len(rest) > 0 && one.DeletionTimestamp == nil && one.Spec.Stage != v1alpha1.StageComplete {
		one.nodes = o.named[name]
	}
	return one, nil
}

// completeNodes adds nodes to spec.completedNodes. After a conflict it tries again.
func (o *completeOptions) completeNodes(ctx context.Context, one ending) error {
	m, read := one.NodeMaintenance, true
	settled, stop := settle(ctx)
	defer stop()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !read {
			now := &v1alpha1.NodeMaintenance{}
			if err := o.reached.Get(settled, client.ObjectKeyFromObject(m), now); err != nil {
				return err
			}
			*m = *now
		}
		before := m.DeepCopy()
		for _, node := range one.nodes {
			if completed := (v1alpha1.NodeReference{Name: node}); !slices.Contains(m.Spec.CompletedNodes, completed) {
				m.Spec.CompletedNodes = append(m.Spec.CompletedNodes, completed)
			}
		}
		if read = false; o.dryRun.Mode == dryRunClient || len(m.Spec.CompletedNodes) == len(before.Spec.CompletedNodes) {
			return nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return o.reached.Patch(settled, m, patch, &client.PatchOptions{DryRun: o.dryRun.options(), FieldManager: fieldManager})
	})
	m.SetGroupVersionKind(maintenanceKind)
	if isUncertain(err) {
		return final(fmt.Errorf("unknown whether NodeMaintenance %s was completed for %s: %w. Check with\n  %s",
			m.Name, someOf(one.nodes), cause(err), o.command("status %s", m.Name)))
	}
	return err
}

// awaitNodes waits until the maintenance no longer holds its completed nodes.
func (o *completeOptions) awaitNodes(ctx context.Context, one ending) error {
	left, err := awaitNodes(ctx, o.reached, one.nodes, func(cordoned *metav1.PartialObjectMetadata) bool {
		return cordoned == nil || !slices.Contains(holdersOf(cordoned), one.Name)
	})
	switch {
	case errors.Is(err, errTimeout):
		return notDone("Timed out after %s: NodeMaintenance %s has not released %s yet. See why with\n  %s",
			o.Timeout, one.Name, someOf(left), o.kubectl("describe nodemaintenance %s", one.Name))
	case errors.Is(err, context.Canceled):
		return detached("NodeMaintenance %s will release %s in the background", one.Name, someOf(one.nodes))
	}
	return err
}
