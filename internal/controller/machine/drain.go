package machine

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

const loggedPods = 5

// halt stops evictions unless the decision drains, before anything else is done.
func halt(seen *observed, decision *lifecycle.Decision) {
	if seen.connection != nil && decision.Drain == nil {
		seen.connection.Evictions.Want(client.ObjectKeyFromObject(seen.Machine), nil, nil)
	}
}

// drain cordons the Node and evicts exactly the pods of the decision. If the cordon fails nothing
// is evicted, as replacements could land on the Node.
func (r *reconciler) drain(ctx context.Context, seen *observed, decision *lifecycle.Decision) error {
	c := seen.connection
	if c == nil {
		return nil
	}
	machine := client.ObjectKeyFromObject(seen.Machine)
	if err := r.cordon(ctx, c, decision.Cordon); err != nil {
		c.Evictions.Want(machine, nil, nil)
		return err
	}
	if decision.Drain == nil {
		return nil
	}
	logger := log.FromContext(ctx).WithValues("Node", seen.node.Name)
	if decision.DrainStarts {
		logger.Info("Draining Node")
	}
	r.logPods(logger, machine, decision.Drain)
	c.Evictions.Want(machine, decision.Drain.Evict, decision.Drain.GracePeriodSeconds)
	return nil
}

func (r *reconciler) cordon(ctx context.Context, c *workload.Connection, node *corev1.Node) error {
	if node == nil {
		return nil
	}
	log.FromContext(ctx).Info("Cordoning Node", "Node", node.Name)
	if err := kube.MakeUnschedulable(ctx, c.Client, node); err != nil {
		return fmt.Errorf("cordon node %s: %w", node.Name, err)
	}
	return nil
}

// logPods logs the progress as the deletion-process page describes ("Observability"), if it has
// changed.
func (r *reconciler) logPods(logger logr.Logger, machine types.NamespacedName, drain *nodedrain.Decision) {
	names := func(pods []*corev1.Pod) string { return nodedrain.Names(pods, loggedPods) }
	switch {
	case r.views.isLogged(machine, drain.Message):
	case len(drain.Refused) < len(drain.Evict):
		logger.Info("Drain not completed yet, there are still Pods on the Node that have to be drained",
			"podsToTriggerEviction", names(drain.Evict), "podsWithDeletionTimestamp", names(drain.Terminating))
	default:
		logger.Info("Drain not completed yet, waiting for events",
			"podsFailedEviction", names(drain.Refused), "podsWithDeletionTimestamp", names(drain.Terminating),
			"podsToWaitCompleted", names(drain.Completing), "podsToTriggerEvictionLater", names(drain.Later))
	}
}

func logDrained(ctx context.Context, seen *observed, decision *lifecycle.Decision) {
	if !decision.DrainEnds {
		return
	}
	logger := log.FromContext(ctx).WithValues("Node", seen.node.Name)
	if !decision.DrainStarts {
		logger.Info("Drain completed, remaining Pods on the Node have been evicted")
	}
	logger.Info("Drain completed")
}
