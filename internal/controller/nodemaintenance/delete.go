package nodemaintenance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

const confirmTimeout = 5 * time.Second // to read a maintenance before its deadline deletes pods

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;delete

func (a *action) delete(ctx context.Context) {
	if !slices.ContainsFunc(a.nodes, func(node *actionNode) bool { return len(node.Delete) > 0 }) {
		return
	}
	in := a.inForce(ctx)
	var mu sync.Mutex
	deleted := map[*actionNode]map[string][]string{}
	wanted := func(node *actionNode) []maintenance.Deletion {
		return slices.DeleteFunc(slices.Clone(node.Delete), func(one maintenance.Deletion) bool { return !in.Has(one.Maintenance) })
	}
	alternate(ctx, a, wanted, func(node *actionNode, one maintenance.Deletion) change {
		return change{maintenance.Write{Kind: maintenance.WriteDeletion, Pod: one.Pod.UID}, one.Pod.Namespace, func() error {
			done, err := a.deletePod(ctx, node.Node.Name, one)
			if !done {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if deleted[node] == nil {
				deleted[node] = map[string][]string{}
			}
			deleted[node][one.Maintenance] = append(deleted[node][one.Maintenance], one.Pod.Namespace+"/"+one.Pod.Name)
			return nil
		}}
	})
	// A deletion that takes long is reported by the pod's own event.
	mu.Lock()
	defer mu.Unlock()
	for node, by := range deleted {
		for m, pods := range by {
			slices.Sort(pods)
			a.emit(event.PodsDeletedPastDeadline(node.Node, m, pods))
		}
	}
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=get

// inForce returns the maintenances whose deadlines delete pods in this pass, confirmed by the API
// server itself: our cache may not show yet that a deadline was postponed, and a deletion cannot be
// undone.
func (a *action) inForce(ctx context.Context) sets.Set[string] {
	wanted := sets.New[string]()
	for _, node := range a.nodes {
		for i := range node.Delete {
			wanted.Insert(node.Delete[i].Maintenance)
		}
	}
	names := sets.List(wanted)
	confirmed := make([]bool, len(names))
	kube.Parallel(a.workers, len(names), func(i int) {
		confirmed[i] = a.write(group.Maintenance(names[i]), maintenance.Write{Kind: readMaintenance}, func() error {
			return a.confirm(ctx, names[i])
		})
	})
	in := sets.New[string]()
	for i, name := range names {
		if confirmed[i] {
			in.Insert(name)
		}
	}
	return in
}

// confirm returns an error if the maintenance has changed since this pass has read it.
func (a *action) confirm(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	var now v1alpha1.NodeMaintenance
	seen := a.records[name]
	if err := a.live.Get(ctx, types.NamespacedName{Name: name}, &now); err != nil {
		if seen != nil && !stale(err) {
			a.emit(event.DeadlineUnconfirmed(seen.Maintenance, err))
		}
		return fmt.Errorf("confirm the deadline of maintenance %s: %w", name, err)
	}
	if seen == nil || now.UID != seen.Maintenance.UID || now.Generation != seen.Maintenance.Generation || now.DeletionTimestamp != nil {
		return apierrors.NewConflict(v1alpha1.SchemeGroupVersion.WithResource("nodemaintenances").GroupResource(), name,
			fmt.Errorf("its deadline was decided on at generation %d", now.Generation))
	}
	return nil
}

// deletePod deletes the pod of this UID, or shortens its grace period. It returns false if that was
// not done, or done before. The resource version is no precondition, so that changing a pod all the
// time does not keep it.
func (a *action) deletePod(ctx context.Context, node string, one maintenance.Deletion) (done bool, err error) {
	pod := &corev1.Pod{}
	err = a.client.Get(ctx, client.ObjectKeyFromObject(one.Pod), pod)
	if err == nil && (pod.UID != one.Pod.UID || !pod.DeletionTimestamp.Equal(one.Pod.DeletionTimestamp)) {
		return false, nil
	}
	if err == nil {
		err = a.client.Delete(ctx, pod, client.Preconditions{UID: &one.Pod.UID}, client.GracePeriodSeconds(one.GracePeriodSeconds))
	}
	switch {
	case kube.IsStale(err):
		return false, nil
	case err != nil:
		return false, err
	}
	log.FromContext(ctx).Info("Deleted a pod past its budgets", "reason", "deadline",
		"pod", client.ObjectKeyFromObject(one.Pod), "node", node, "maintenance", one.Maintenance, "grace", one.GracePeriodSeconds)
	a.emit(one.Events...)
	return true, nil
}
