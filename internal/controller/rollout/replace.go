package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// replaceTimeout bounds the reads and the deletion of one machine.
	replaceTimeout = 10 * time.Second
	// replacedPause is the time until it is checked again whether a machine is being deleted.
	replacedPause = time.Minute
)

// errChanged is for machines that need another decision.
var errChanged = errors.New("changed meanwhile")

// errNoMachine is for nodes without a known owner of their machine.
var errNoMachine = errors.New("no machine")

// replacements holds the results of the last deletion of the machine of a node, by the name of its
// NodeMaintenance. It is safe for concurrent use.
type replacements struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[string]replacement
}

// replacement is a result; without a reason the machine was deleted.
type replacement struct {
	core.Unreplaced
	until time.Time
	pause time.Duration
}

func newReplacements(clk clock.PassiveClock) *replacements {
	return &replacements{clock: clk, all: map[string]replacement{}}
}

// settle notes the result of a deletion.
func (r *replacements) settle(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := replacement{pause: replacedPause}
	switch {
	case isOutdated(err):
		one = r.all[name]
		one.pause = firstPause
	case err != nil:
		one.pause = min(max(2*r.all[name].pause, firstPause), lastPause)
		one.Unreplaced = core.Unreplaced{Reason: v1alpha1.RolloutNodeReplaceRefused, Message: excerpt.Of(err.Error(), maxRefusal)}
		if errors.Is(err, errNoMachine) {
			one.Reason = v1alpha1.RolloutNodeNoMachine
		}
	}
	one.until = r.clock.Now().Add(one.pause)
	r.all[name] = one
}

// rests returns true while a deletion is not repeated.
func (r *replacements) rests(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().Before(r.all[name].until)
}

// unreplaced returns why machines were not deleted, and when the next deletion is due; 0 is never.
func (r *replacements) unreplaced() (all map[string]core.Unreplaced, due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = map[string]core.Unreplaced{}
	for name, one := range r.all {
		if one.Reason != "" {
			all[name] = one.Unreplaced
		}
		if left := one.until.Sub(r.clock.Now()); left > 0 {
			due = kube.Soonest(due, left)
		}
	}
	return all, due
}

// keep forgets all results but those of deletions that are still asked for.
func (r *replacements) keep(decisions []core.RolloutDecision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := map[string]bool{}
	for i := range decisions {
		for _, one := range decisions[i].Replacements {
			asked[one.Maintenance.Name] = true
		}
	}
	maps.DeleteFunc(r.all, func(name string, _ replacement) bool { return !asked[name] })
}

// replacementsOf returns the deletions of a decision that do not rest.
func (r *reconciler) replacementsOf(decision *core.RolloutDecision) []core.Replacement {
	return slices.DeleteFunc(slices.Clone(decision.Replacements), func(one core.Replacement) bool { return r.replacements.rests(one.Maintenance.Name) })
}

// replace deletes the machines of drained nodes. None waits for another one.
func (w *writing) replace(ctx context.Context) {
	kube.Parallel(maxWrites, len(w.replaced), func(i int) {
		one := w.replaced[i]
		ctx, cancel := context.WithTimeout(ctx, replaceTimeout)
		defer cancel()
		err := w.replaceOne(ctx, one)
		w.replacements.settle(one.Maintenance.Name, err)
		if err != nil && !isOutdated(err) {
			log.FromContext(ctx).Error(err, "Failed to delete a machine, retrying", "rollout", w.before.Name, "node", one.Node)
		}
	})
}

func isOutdated(err error) bool { return kube.IsStale(err) || errors.Is(err, errChanged) }

// replaceOne deletes the machine of a node, if the API server shows that the node is still drained
// and that the machine is its own.
func (w *writing) replaceOne(ctx context.Context, one core.Replacement) error {
	node, err := w.drainedNode(ctx, one)
	if err != nil {
		return err
	}
	owner, object, err := w.machineOf(ctx, node)
	if object == nil || err != nil {
		return err
	}
	if err := owner.Kind.Check(object, node); err != nil {
		return fmt.Errorf("%s is not deleted for node %s: %w", owner, node.Name, err)
	}
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	asRead := client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
	if err := w.client.Delete(ctx, object, asRead, client.PropagationPolicy(metav1.DeletePropagationBackground), client.DisableReadYourWritesConsistency); err != nil {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("Deleted the machine of a node", "rollout", w.before.Name, "node", node.Name, "machine", owner.String())
	w.emit(event.RolloutMachineDeleted(w.before, node.Name, owner.String()))
	return nil
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get

// drainedNode reads the node. It fails if it is gone or no longer drained for the rollout.
func (w *writing) drainedNode(ctx context.Context, one core.Replacement) (*corev1.Node, error) {
	of := &v1alpha1.NodeMaintenance{}
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(one.Maintenance), of); err != nil {
		return nil, fmt.Errorf("read NodeMaintenance %s: %w", one.Maintenance.Name, err)
	}
	before := one.Maintenance.Annotations[v1alpha1.RolloutAttemptAnnotation]
	if of.UID != one.Maintenance.UID || of.Annotations[v1alpha1.RolloutAttemptAnnotation] != before || of.DeletionTimestamp != nil ||
		maintenance.Stage(of) != v1alpha1.StageDrain || !meta.IsStatusConditionTrue(of.Status.Conditions, v1alpha1.ConditionDrained) {
		return nil, errChanged
	}
	node := &corev1.Node{}
	if err := w.live.Get(ctx, client.ObjectKey{Name: one.Node}, node); err != nil {
		return nil, fmt.Errorf("read node %s: %w", one.Node, err)
	}
	if node.UID != one.NodeUID {
		return nil, errChanged
	}
	return node, nil
}

// machineOf reads the object that owns the machine of a node; nil if it is gone.
func (w *writing) machineOf(ctx context.Context, node *corev1.Node) (owner core.Machine, object *unstructured.Unstructured, err error) {
	own, err := w.ownMachines(ctx, node)
	if err != nil {
		return owner, nil, err
	}
	if owner, err = w.machines.MachineOf(node, own); err != nil {
		return owner, nil, fmt.Errorf("%w of node %s can be deleted: %w", errNoMachine, node.Name, err)
	}
	object = &unstructured.Unstructured{}
	object.SetGroupVersionKind(owner.Kind.GVK())
	err = w.live.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, object)
	switch {
	case apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) && !apierrors.IsUnexpectedServerError(err):
		return owner, nil, nil
	case err != nil:
		return owner, nil, fmt.Errorf("read %s: %w", owner, err)
	}
	return owner, object, nil
}

// ownMachines returns our Machines whose status names a node of this name.
func (w *writing) ownMachines(ctx context.Context, node *corev1.Node) (own []core.Machine, err error) {
	if !slices.Contains(w.machines, core.OwnMachine) {
		return nil, nil
	}
	var list v1alpha1.MachineList
	if err := w.client.List(ctx, &list, client.MatchingFields{kube.MachineNodeField: node.Name}, client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		// Another cluster may have a node of this name.
		if m := &list.Items[i]; m.Status.NodeRef != nil && m.Status.NodeRef.UID == node.UID {
			own = append(own, core.Machine{Kind: core.OwnMachine, Namespace: m.Namespace, Name: m.Name})
		}
	}
	return own, nil
}
