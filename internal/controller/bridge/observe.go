package bridge

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

// observed holds the snapshot of a pass.
type observed struct {
	core.Snapshot

	request request
	// object is the Machine as it was read; nil if it is gone.
	object *unstructured.Unstructured
	// rules select its pods, drain reports the progress in another cluster.
	rules drainrule.Rules
	drain *drainOf
	// unwatched is true if its instance was read and is not watched yet.
	unwatched bool
}

func (r *reconciler) observe(ctx context.Context, q request) (*observed, error) {
	seen := &observed{request: q}
	seen.Now, seen.ClockSkewed = r.now()
	kind := r.kinds.of(q.bridge)
	if kind == nil {
		return seen, nil
	}
	var err error
	if seen.object, err = r.kinds.get(ctx, kind.machine, q.NamespacedName); err != nil {
		return nil, err
	}
	// Before the maintenance is read: what becomes of it from now on wakes the Machine.
	r.expect(q, seen.object)
	if err := r.observeMaintenance(ctx, seen); err != nil {
		return nil, err
	}
	if seen.object == nil {
		return seen, nil
	}
	machine := core.Read(seen.object)
	seen.Machine = &machine
	r.observeAround(ctx, seen, kind)
	if machine.Deleting && machine.Node != "" {
		if seen.Node, err = r.node(ctx, machine.Node); err != nil {
			return nil, err
		}
	}
	if machine.Bridge == core.ClusterAPI && machine.Deleting && machine.Hooked {
		seen.Instance, seen.unwatched = r.kinds.instance(ctx, &machine)
		return seen, r.observeRules(ctx, seen)
	}
	return seen, nil
}

// expect remembers under which name a Machine that is being deleted has its maintenance, so
// that also one wakes it that another client has made, and that does not say for whom.
func (r *reconciler) expect(q request, machine *unstructured.Unstructured) {
	name := core.MaintenanceName(q.bridge, q.Namespace, q.Name)
	if machine == nil || machine.GetDeletionTimestamp() == nil {
		r.expected.Delete(name)
		return
	}
	r.expected.Store(name, q)
}

// observeAround reads what the Machine is in. That it is gone is only believed of the API
// server itself: the hook of a Machine goes with its Cluster.
func (r *reconciler) observeAround(ctx context.Context, seen *observed, kind *kind) {
	if seen.Machine.Around == "" {
		return
	}
	key := types.NamespacedName{Namespace: seen.Machine.Ref.Namespace, Name: seen.Machine.Around}
	object, err := r.kinds.get(ctx, kind.around, key)
	switch {
	case err != nil:
		seen.AroundUnread = fmt.Sprintf("%s %s could not be read: %v", kind.around.Kind, key, err)
	case object != nil:
		around := core.ReadAround(object)
		seen.Around = &around
	}
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

func (r *reconciler) observeMaintenance(ctx context.Context, seen *observed) error {
	maintenance, err := r.maintenance(ctx, seen.request)
	if err != nil || maintenance == nil {
		return err
	}
	seen.Maintenance = maintenance
	if node := core.NodeUnder(maintenance); node != "" {
		seen.Held, err = r.node(ctx, node)
	}
	return err
}

// maintenance reads that of a Machine: the one with its name, or else one that an earlier
// version has made for it; nil if there is none.
func (r *reconciler) maintenance(ctx context.Context, q request) (*v1alpha1.NodeMaintenance, error) {
	for _, name := range []string{core.MaintenanceName(q.bridge, q.Namespace, q.Name), core.FormerName(q.Namespace, q.Name)} {
		maintenance := &v1alpha1.NodeMaintenance{}
		err := r.client.Get(ctx, types.NamespacedName{Name: name}, maintenance)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("get NodeMaintenance %s: %w", name, err)
		}
		former := name == core.FormerName(q.Namespace, q.Name)
		if !former || slices.Contains(requestOf(core.MachineOf(maintenance)), q) {
			return maintenance, nil
		}
	}
	return nil, nil
}

// node reads a node of this cluster; nil if there is none. What the cache does not know the
// API server is asked for: a node that is gone ends its maintenance.
func (r *reconciler) node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, types.NamespacedName{Name: name}, node)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get node %s: %w", name, err)
	}
	return node, nil
}
