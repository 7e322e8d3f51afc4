package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=clusters;machines,verbs=list;watch

// observe reads a Cluster with its Machines and connection. The Cluster is nil if it is gone.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (lifecycle.ClusterSnapshot, error) {
	cluster := &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, key, cluster); err != nil {
		return lifecycle.ClusterSnapshot{}, client.IgnoreNotFound(err)
	}
	machines, err := r.machines(ctx, key)
	if err == nil && len(machines) == 0 && cluster.DeletionTimestamp != nil {
		machines, err = r.unseen(ctx, key)
	}
	if err != nil {
		return lifecycle.ClusterSnapshot{}, fmt.Errorf("list the Machines: %w", err)
	}
	state := r.connections.State(key)
	var hold *v1alpha1.ClusterHoldOff
	if state.HoldOff.Count > 0 {
		hold = &v1alpha1.ClusterHoldOff{BreachCount: state.HoldOff.Count, EndTime: metav1.NewTime(state.HoldOff.End).Rfc3339Copy()}
	}
	return lifecycle.ClusterSnapshot{
		HoldOff: hold,
		Cluster: cluster, Machines: machines,
		Reachable: metav1.Condition{
			Status: state.Status, Reason: state.Reason, Message: state.Message,
			LastTransitionTime: metav1.NewTime(state.Since).Rfc3339Copy(),
		},
	}, nil
}

func (r *reconciler) machines(ctx context.Context, cluster types.NamespacedName) ([]*v1alpha1.Machine, error) {
	list := &v1alpha1.MachineList{}
	err := r.client.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingFields{kube.MachineClusterField: cluster.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	return kube.Pointers(list.Items), err
}

// unseen reads Machines that the cache does not show yet: without its Cluster a Machine could never
// be deleted.
func (r *reconciler) unseen(ctx context.Context, cluster types.NamespacedName) ([]*v1alpha1.Machine, error) {
	list := &v1alpha1.MachineList{}
	if err := r.live.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, err
	}
	var machines []*v1alpha1.Machine
	for _, machine := range kube.Pointers(list.Items) {
		if machine.Spec.ClusterName == cluster.Name {
			machines = append(machines, machine)
		}
	}
	return machines, nil
}
