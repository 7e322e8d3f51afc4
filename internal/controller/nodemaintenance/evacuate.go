package nodemaintenance

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// alternate makes a write for each item of the nodes, such as their pods: for the first item of
// each node, then for the second of each, so that no node waits for all of another one. Writes that
// were refused before come last.
func alternate[T any](ctx context.Context, a *action, of func(*actionNode) []T, write func(*actionNode, T) change) {
	type task struct {
		tries, place int
		node         *actionNode
		change
	}
	var tasks []task
	for _, node := range a.nodes {
		if node.failed {
			continue
		}
		for place, one := range of(node) {
			c := write(node, one)
			tasks = append(tasks, task{a.refusals.times(group.Node(node.Node.Name), c.Write), place, node, c})
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Or(a.tries-b.tries, a.place-b.place) })
	kube.Parallel(a.workers, len(tasks), func(i int) { a.changeNode(ctx, tasks[i].node, tasks[i].change) })
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=patch

// withdraw removes our instigator finalizer from Evacuations.
func (a *action) withdraw(ctx context.Context) {
	all := func(node *actionNode) []*v1alpha1.Evacuation { return node.Withdraw }
	alternate(ctx, a, all, func(node *actionNode, withdrawn *v1alpha1.Evacuation) change {
		write := maintenance.Write{Kind: maintenance.WriteWithdrawal, Pod: withdrawn.Spec.PodRef.UID}
		return change{write, withdrawn.Namespace, func() error {
			if _, err := kube.RemoveFinalizer(ctx, a.client, withdrawn, v1alpha1.NodeMaintenanceInstigator); err != nil {
				return err
			}
			log.FromContext(ctx).Info("Withdrew an evacuation", "evacuation", client.ObjectKeyFromObject(withdrawn),
				"node", node.Node.Name)
			return nil
		}}
	})
}

// evacuate requests pods to leave, on each node in the order of the drain plan.
func (a *action) evacuate(ctx context.Context) {
	asked := func(node *actionNode) []maintenance.Request { return node.Evacuate }
	wanted := slices.ContainsFunc(a.nodes, func(node *actionNode) bool { return len(node.Evacuate) > 0 })
	if slices.ContainsFunc(a.nodes, func(node *actionNode) bool { return node.closed }) {
		a.schedule.cordons(a.clock.Now(), a.group, wanted)
		if wanted {
			a.wait(atOnce)
		}
		return
	}
	if !wanted {
		return
	}
	if crowd := a.schedule.crowd(a.clock.Now(), a.group); crowd > 0 {
		a.wait(crowd)
		return
	}
	alternate(ctx, a, asked, func(_ *actionNode, request maintenance.Request) change {
		write := maintenance.Write{Kind: maintenance.WriteEvacuation, Pod: request.Pod.UID}
		return change{write, request.Pod.Namespace, func() error {
			if err := a.request(ctx, request); err != nil {
				return err
			}
			a.emit(request.Events...)
			return nil
		}}
	})
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=create

// request creates the Evacuation or EvictionRequest of a pod, or joins the Evacuation of another
// instigator. One that is being deleted cannot be joined; its deletion brings the next pass.
func (r *reconciler) request(ctx context.Context, request maintenance.Request) error {
	pod := request.Pod
	logger := log.FromContext(ctx).WithValues("pod", client.ObjectKeyFromObject(pod), "node", pod.Spec.NodeName)
	switch {
	case request.EvictionRequest != nil:
		if err := r.requestEviction(ctx, request.EvictionRequest); err != nil {
			return err
		}
	case request.Evacuation == nil:
		if err := r.create(ctx, pod); err != nil {
			return err
		}
	case request.Evacuation.DeletionTimestamp != nil:
		return nil
	default:
		if _, err := kube.AddFinalizer(ctx, r.client, request.Evacuation, v1alpha1.NodeMaintenanceInstigator); err != nil {
			return err
		}
	}
	logger.Info("Requested the evacuation of a pod", "byEvictionRequest", request.EvictionRequest != nil)
	return nil
}

func (r *reconciler) create(ctx context.Context, pod *corev1.Pod) error {
	deployment, err := kube.DeploymentOf(ctx, r.client, pod)
	if err != nil {
		return fmt.Errorf("find the Deployment of the pod: %w", err)
	}
	evacuators, _ := surge.Evacuators(pod, deployment, r.surge)
	wanted := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, evacuators)
	// The cache of the pass may not show the creation of an earlier one.
	err = r.client.Get(ctx, client.ObjectKeyFromObject(wanted), &v1alpha1.Evacuation{}, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		return apierrors.NewAlreadyExists(v1alpha1.SchemeGroupVersion.WithResource("evacuations").GroupResource(), wanted.Name)
	case !apierrors.IsNotFound(err):
		return err
	}
	return r.client.Create(ctx, wanted)
}
