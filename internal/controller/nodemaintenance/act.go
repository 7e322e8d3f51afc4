package nodemaintenance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// actTime is how long a pass starts new work on nodes. What is left is found
	// again by the next pass, which sees what has changed meanwhile: a large
	// drain does not keep a cancellation waiting.
	actTime = 2 * time.Second
	// podWorkers is how many pods of one node are written for at the same time.
	podWorkers = 4
)

// work is what a pass does to nodes and their pods.
type work struct {
	nodes   []maintenance.NodeDecision
	records records
	// ends is when no new work is started any more.
	ends time.Time
}

// act does what was decided for each node whose maintenances are recorded. All
// cordons come before the first pod leaves: its replacement must not land on a
// node that is about to be drained as well. A node whose cordon fails is left
// alone and no other one waits for it to succeed.
func (r *reconciler) act(ctx context.Context, todo work) error {
	r.refusals.GC()
	todo.ends = r.clock.Now().Add(actTime)
	cordoned := r.onNodes(todo, func(_ int, node *maintenance.NodeDecision) error { return r.cordon(ctx, node) })
	moved := r.onNodes(todo, func(i int, node *maintenance.NodeDecision) error {
		if cordoned[i] != nil {
			return cordoned[i]
		}
		return r.movePods(ctx, node, todo)
	})
	return utilerrors.NewAggregate(moved)
}

// onNodes does something for every node whose maintenances are recorded, until
// the pass is out of time, and notes whose maintenances are not finished with it.
func (r *reconciler) onNodes(todo work, do func(i int, node *maintenance.NodeDecision) error) []error {
	failures := parallel(r.workers, len(todo.nodes), func(i int) error {
		node := &todo.nodes[i]
		switch {
		case anyFailed(todo.records.of(node.Maintenances)):
			return nil
		case r.clock.Now().After(todo.ends):
			return errOutOfTime
		default:
			return do(i, node)
		}
	})
	for i, err := range failures {
		if err == nil {
			continue
		}
		for _, holder := range todo.records.of(todo.nodes[i].Maintenances) {
			holder.unfinished = true
		}
	}
	return failures
}

// movePods says what the pods that stay need, withdraws and asks for evacuations,
// and announces the state of the node.
func (r *reconciler) movePods(ctx context.Context, node *maintenance.NodeDecision, todo work) error {
	recorded := r.writeRecord(ctx, node)
	withdrawn := r.withdraw(ctx, node, todo)
	evacuated := r.evacuate(ctx, node, todo)
	r.announce(ctx, node)
	return utilerrors.NewAggregate([]error{recorded, withdrawn, evacuated})
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=patch

// cordon brings the hold on the node to what was decided, and tells of it at
// once: the next pass finds nothing to tell any more.
func (r *reconciler) cordon(ctx context.Context, node *maintenance.NodeDecision) error {
	if wanted := node.Cordon; wanted != nil {
		if err := kube.Cordon(ctx, r.client, node.Node, kube.Hold(*wanted)); err != nil {
			return fmt.Errorf("change the cordon of node %s: %w", node.Node.Name, err)
		}
		log.FromContext(ctx).Info("Changed the cordon of a node", "node", node.Node.Name,
			"unschedulable", wanted.Unschedulable, "ledger", wanted.Ledger,
			"drainTargets", wanted.DrainTargets, "suppress", wanted.Suppress)
	}
	r.emit(node.Events...)
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=patch

// withdraw takes our request back; the requests of others stay.
func (r *reconciler) withdraw(ctx context.Context, node *maintenance.NodeDecision, todo work) error {
	return r.each(todo, len(node.Withdraw), func(i int) error {
		withdrawn := node.Withdraw[i]
		if _, err := kube.RemoveFinalizer(ctx, r.client, withdrawn, v1alpha1.NodeMaintenanceInstigator); err != nil {
			return fmt.Errorf("withdraw evacuation %s: %w", client.ObjectKeyFromObject(withdrawn), err)
		}
		log.FromContext(ctx).Info("Withdrew an evacuation", "evacuation", client.ObjectKeyFromObject(withdrawn),
			"node", node.Node.Name)
		return nil
	})
}

// evacuate asks for the evacuation of pods, in the order of the drain plan.
func (r *reconciler) evacuate(ctx context.Context, node *maintenance.NodeDecision, todo work) error {
	return r.each(todo, len(node.Evacuate), func(i int) error {
		asked := node.Evacuate[i]
		if err := r.ask(ctx, asked.Pod, asked.Evacuation); err != nil {
			return fmt.Errorf("ask for the evacuation of pod %s: %w", client.ObjectKeyFromObject(asked.Pod), err)
		}
		r.emit(asked.Events...)
		return nil
	})
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=create

// ask creates the Evacuation of a pod, or joins the one that somebody else asked
// for. One that is on its way out cannot be joined; its deletion brings the next
// pass, as the deletion of a pod does whose namespace is on its way out.
func (r *reconciler) ask(ctx context.Context, pod *corev1.Pod, existing *v1alpha1.Evacuation) error {
	logger := log.FromContext(ctx).WithValues("pod", client.ObjectKeyFromObject(pod), "node", pod.Spec.NodeName)
	switch {
	case existing == nil:
		err := r.create(ctx, pod)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			logger.V(1).Info("The namespace of the pod is being deleted and takes no Evacuation")
			return nil
		}
		if err != nil {
			return err
		}
	case existing.DeletionTimestamp != nil:
		logger.V(1).Info("The pod's previous Evacuation is on its way out and has to go first")
		return nil
	default:
		if _, err := kube.AddFinalizer(ctx, r.client, existing, v1alpha1.NodeMaintenanceInstigator); err != nil {
			return err
		}
	}
	logger.Info("Asked for the evacuation of a pod")
	return nil
}

func (r *reconciler) create(ctx context.Context, pod *corev1.Pod) error {
	deployment, err := kube.DeploymentOf(ctx, r.client, pod)
	if err != nil {
		return fmt.Errorf("find the Deployment of the pod: %w", err)
	}
	evacuators, _ := surge.Evacuators(pod, deployment, r.surge)
	return r.client.Create(ctx, evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, evacuators))
}

// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch

// announce publishes the node conditions, best effort: a refusal is shown and
// tried again after a while, and stops nothing.
func (r *reconciler) announce(ctx context.Context, node *maintenance.NodeDecision) {
	name := node.Node.Name
	if len(node.Conditions)+len(node.Retract) == 0 || r.refusals.IsInBackOffSinceUpdate(name, r.clock.Now()) {
		return
	}
	err := kube.PublishConditions(ctx, r.client, node.Node, node.Conditions, node.Retract)
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		r.refusals.Next(name, r.clock.Now())
		r.metrics.conditionErrors.Inc()
		r.emit(event.NodeConditionsRefused(node.Node, err))
		return
	}
	r.refusals.DeleteEntry(name)
	r.metrics.conditionsChanged(node.Node.Status.Conditions, node.Conditions)
}

// announceAgain is when node conditions that were refused are due again.
func (r *reconciler) announceAgain(nodes []maintenance.NodeDecision) time.Duration {
	var due time.Duration
	for i := range nodes {
		name := nodes[i].Node.Name
		if len(nodes[i].Conditions)+len(nodes[i].Retract) > 0 && r.refusals.IsInBackOffSinceUpdate(name, r.clock.Now()) {
			due = kube.Soonest(due, r.refusals.Get(name))
		}
	}
	return due
}

// each does something for every pod of a node until the pass is out of time.
func (r *reconciler) each(todo work, count int, do func(i int) error) error {
	return utilerrors.NewAggregate(parallel(podWorkers, count, func(i int) error {
		if r.clock.Now().After(todo.ends) {
			return errOutOfTime
		}
		return do(i)
	}))
}

func anyFailed(holders []*record) bool {
	for _, holder := range holders {
		if holder.failed {
			return true
		}
	}
	return false
}
