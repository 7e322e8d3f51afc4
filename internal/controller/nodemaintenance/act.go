package nodemaintenance

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// actTime is the time in which a pass starts work on nodes. The next pass does the rest and sees
// what has changed meanwhile, so that a large drain does not delay its cancellation.
const actTime = 2 * time.Second

// action carries out what was decided for the nodes of a group and their pods.
type action struct {
	*writer

	nodes   []*actionNode
	records records
	ends    time.Time // no work is started later
}

// actionNode is a node in a pass that acts on it.
type actionNode struct {
	*maintenance.NodeDecision

	holders []*record
	// closed is true if this pass has made it unschedulable, failed if its cordon could not be
	// written.
	closed, failed bool
}

// act does what was decided for each node whose maintenances are recorded. All cordons come before
// the first pod leaves, because its replacement must not land on a node that is about to be drained
// as well. Therefore a pass that has made a node unschedulable requests no pod to leave; the next
// one does, after the passes of all groups that wait.
func (w *writer) act(ctx context.Context, decided []maintenance.NodeDecision, all records) {
	a := &action{writer: w, records: all, ends: w.clock.Now().Add(actTime)}
	for i := range decided {
		node := &actionNode{NodeDecision: &decided[i], holders: all.of(decided[i].Maintenances)}
		if !slices.ContainsFunc(node.holders, func(holder *record) bool { return holder.failed || holder.ended }) {
			a.nodes = append(a.nodes, node)
		}
	}
	a.onNodes(func(node *actionNode) { a.cordon(ctx, node) })
	a.onNodes(func(node *actionNode) { a.writeDrainRecord(ctx, node) })
	a.withdraw(ctx)
	a.withdrawRequests(ctx)
	a.delete(ctx)
	a.evacuate(ctx)
	a.onNodes(func(node *actionNode) { a.announce(ctx, node) })
}

// onNodes calls a function for all nodes whose cordon has not failed.
func (a *action) onNodes(do func(*actionNode)) {
	kube.Parallel(a.workers, len(a.nodes), func(i int) {
		if node := a.nodes[i]; !node.failed {
			do(node)
		}
	})
}

// changeNode makes a write that belongs to a node, unless the pass is out of time. A maintenance is
// unfinished as long as one is not made.
func (a *action) changeNode(ctx context.Context, node *actionNode, c change) bool {
	switch {
	case a.clock.Now().After(a.ends):
		a.wait(atOnce)
	case a.attempt(ctx, group.Node(node.Node.Name), c):
		return true
	}
	for _, holder := range node.holders {
		holder.unfinished.Store(true)
	}
	return false
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=patch

// cordon writes the cordon of a node, and publishes its events at once: the next pass would not.
func (a *action) cordon(ctx context.Context, node *actionNode) {
	wanted := node.Cordon
	if wanted == nil {
		a.publish(node.NodeDecision)
		return
	}
	decided := node.NodeDecision
	made := a.changeNode(ctx, node, change{Write: maintenance.Write{Kind: maintenance.WriteCordon, Node: node.Node.Name}, request: func() error {
		if err := kube.Cordon(ctx, a.client, decided.Node, kube.Hold(*wanted)); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Changed the cordon of a node", "node", decided.Node.Name,
			"unschedulable", wanted.Unschedulable, "ledger", wanted.Ledger,
			"drainTargets", wanted.DrainTargets, "suppress", wanted.Suppress)
		a.publish(decided)
		return nil
	}})
	node.failed = !made
	node.closed = made && wanted.Unschedulable && !node.Node.Spec.Unschedulable
}

func (a *action) publish(decided *maintenance.NodeDecision) {
	a.emit(decided.Events...)
	if decided.MissesAgent {
		a.silences.report(decided.Node.Name)
	}
}

// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch

// announce publishes the node conditions, best effort: a refusal is reported and retried.
func (a *action) announce(ctx context.Context, node *actionNode) {
	if node.closed || len(node.Conditions)+len(node.Retract) == 0 || node.Pinned && node.Cordon != nil {
		// The next pass sees the node as it is by then.
		return
	}
	write := maintenance.Write{Kind: maintenance.WriteConditions, Node: node.Node.Name}
	a.attempt(ctx, group.Node(node.Node.Name), change{Write: write, request: func() error {
		err := kube.PublishConditions(ctx, a.client, node.Node, kube.Conditions{Set: node.Conditions, Removed: node.Retract, Pinned: node.Pinned})
		switch {
		case err == nil:
			a.metrics.conditionsChanged(node.Node.Status.Conditions, node.Conditions)
		case !stale(err):
			a.metrics.conditionErrors.Inc()
			a.emit(event.NodeConditionsRefused(node.Node, err))
		}
		return err
	}})
}
