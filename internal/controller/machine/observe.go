package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

type observed struct {
	lifecycle.Snapshot
	infrastructure, bootstrap *unstructured.Unstructured
	// connection is nil if the Machine does not need its Node, or has no cluster.
	connection *workload.Connection
	// node is nil if it is unknown or not needed.
	node *corev1.Node
	// crowded is true if too many passes use the same cluster or kind.
	crowded bool
	// unread is true if something could not be read or is not watched, so that the next pass must
	// be scheduled.
	unread bool
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=machines;clusters,verbs=list;watch

// observe reads a Machine and everything that belongs to it; nil if it is gone. Failed reads are
// part of the result.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (*observed, error) {
	machine := &v1alpha1.Machine{}
	if err := r.client.Get(ctx, key, machine); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get the machine: %w", err)
	}
	seen := &observed{Snapshot: lifecycle.Snapshot{Machine: machine}}
	seen.Now, seen.ClockSkewed = r.now()
	if failure, failed := r.refused.Load(key); failed {
		seen.Failure, _ = failure.(string)
	}
	if err := r.observeSiblings(ctx, seen); err != nil {
		return nil, err
	}
	r.observeCluster(ctx, seen)
	r.observeObjects(ctx, seen)
	if !seen.crowded {
		r.observeNode(ctx, seen)
	}
	return seen, nil
}

// observeSiblings reads the few other Machines of the Cluster that matter: reading all of them in
// every pass would be slow.
func (r *reconciler) observeSiblings(ctx context.Context, seen *observed) error {
	spec, which := &seen.Machine.Spec, [][]client.ListOption{}
	if seen.Machine.DeletionTimestamp != nil {
		which = append(which, []client.ListOption{
			client.MatchingFields{kube.MachineClusterField: spec.ClusterName}, client.HasLabels{v1alpha1.ControlPlaneLabel},
		})
	}
	if spec.ProviderID != "" {
		which = append(which, []client.ListOption{client.MatchingFields{kube.MachineProviderField: spec.ProviderID}})
	}
	for _, options := range which {
		siblings, err := r.siblings(ctx, seen.Machine, options...)
		if err != nil {
			return err
		}
		seen.Siblings = append(seen.Siblings, siblings...)
	}
	return nil
}

// siblings reads other Machines of the Cluster one by one, so that our last writes are included.
func (r *reconciler) siblings(ctx context.Context, of *v1alpha1.Machine, options ...client.ListOption) ([]*v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	options = append(options, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err := r.client.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list the machines of the cluster: %w", err)
	}
	var siblings []*v1alpha1.Machine
	for _, sibling := range kube.Pointers(list.Items) {
		if sibling.Name == of.Name || sibling.Spec.ClusterName != of.Spec.ClusterName {
			continue
		}
		switch err := r.client.Get(ctx, client.ObjectKeyFromObject(sibling), sibling); {
		case err == nil:
			siblings = append(siblings, sibling)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get machine %s: %w", sibling.Name, err)
		}
	}
	return siblings, nil
}

func (r *reconciler) observeCluster(ctx context.Context, seen *observed) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	cluster := &v1alpha1.Cluster{}
	key := types.NamespacedName{Namespace: seen.Machine.Namespace, Name: seen.Machine.Spec.ClusterName}
	switch found, err := kube.Find(ctx, r.client, r.live, key, cluster); {
	case err != nil:
		seen.Cluster.Problem, seen.unread = err.Error(), true
	case found:
		seen.Cluster.Object = cluster
	}
}

func (r *reconciler) observeObjects(ctx context.Context, seen *observed) {
	spec := &seen.Machine.Spec
	seen.infrastructure, seen.Infrastructure = r.observeObject(ctx, seen, spec.InfrastructureRef, lifecycle.ReadInfrastructure)
	if ref := spec.Bootstrap.ConfigRef; ref != nil {
		object, reading := r.observeObject(ctx, seen, *ref, lifecycle.ReadBootstrap)
		seen.bootstrap, seen.Bootstrap = object, &reading
	}
	if cluster := seen.Cluster.Object; cluster != nil && cluster.Spec.ControlPlane.Ref != nil {
		_, reading := r.observeObject(ctx, seen, *cluster.Spec.ControlPlane.Ref, lifecycle.ReadControlPlane)
		seen.ControlPlane = &reading
	}
}

type contract func(*unstructured.Unstructured, *v1alpha1.Machine) lifecycle.External

func (r *reconciler) observeObject(
	ctx context.Context, seen *observed, ref v1alpha1.ObjectReference, read contract,
) (*unstructured.Unstructured, lifecycle.Reading[lifecycle.External]) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	get := r.object
	if _, behind := r.stale.Load(client.ObjectKeyFromObject(seen.Machine)); behind {
		get = r.ask
	}
	var found Found
	err := r.ofKind(seen, kindOf(ref), func() (err error) {
		found, err = get(ctx, types.NamespacedName{Namespace: seen.Machine.Namespace, Name: ref.Name}, kindOf(ref))
		return err
	})
	seen.unread = seen.unread || err != nil || !found.Watched
	switch {
	case err != nil:
		return nil, lifecycle.Reading[lifecycle.External]{Problem: unreadable(ref, err)}
	case found.Object == nil:
		return nil, lifecycle.Reading[lifecycle.External]{}
	default:
		external := read(found.Object, seen.Machine)
		return found.Object, lifecycle.Reading[lifecycle.External]{Object: &external}
	}
}

func (r *reconciler) ask(ctx context.Context, key types.NamespacedName, kind schema.GroupVersionKind) (Found, error) {
	object, err := readLive(ctx, r.live, key, kind)
	return Found{Object: object}, err
}
