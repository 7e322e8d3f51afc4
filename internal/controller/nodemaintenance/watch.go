package nodemaintenance

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// coalesce is how long events gather before the pass that sees them all.
const coalesce = 25 * time.Millisecond

// relevance says whether an event can change a decision, and how soon the pass
// is due then. An event is about an object that has come, has changed, or is
// gone; old is nil, both are given, or now is nil.
type relevance[T client.Object] func(old, now T) (due time.Duration, relevant bool)

// sources are the watches that lead to a pass.
func (r *reconciler) sources(c cache.Cache) []source.TypedSource[pass] {
	return []source.TypedSource[pass]{
		source.TypedKind(c, &v1alpha1.NodeMaintenance{}, handlerOf(maintenanceMatters)),
		source.TypedKind(c, &corev1.Node{}, handlerOf(nodeMatters)),
		source.TypedKind(c, &corev1.Pod{}, handlerOf(r.podMatters)),
		source.TypedKind(c, &v1alpha1.Evacuation{}, handlerOf(r.evacuationMatters)),
		source.TypedKind(c, &policyv1.PodDisruptionBudget{}, handlerOf(r.budgetMatters)),
		source.TypedKind(c, &v1alpha1.DrainRecord{}, handlerOf(recordMatters)),
		source.TypedKind(c, &v1alpha1.MachineDrainRule{}, handlerOf(r.ruleMatters)),
		source.TypedKind(c, &corev1.Namespace{}, handlerOf(r.namespaceMatters)),
	}
}

// handlerOf leads the events that matter to the one work item. The queue keeps
// the earliest of the times that an item is added with, so that a burst of
// events costs one pass and no later event puts it off.
func handlerOf[T client.Object](matters relevance[T]) handler.TypedEventHandler[T, pass] {
	type queue = workqueue.TypedRateLimitingInterface[pass]
	var none T
	enqueue := func(q queue, old, now T) {
		if due, relevant := matters(old, now); relevant {
			q.AddAfter(pass{}, due)
		}
	}
	return handler.TypedFuncs[T, pass]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q queue) { enqueue(q, none, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) { enqueue(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q queue) { enqueue(q, e.Object, none) },
	}
}

// maintenanceMatters drops the echo of our own status writes.
func maintenanceMatters(old, now *v1alpha1.NodeMaintenance) (time.Duration, bool) {
	if old == nil || now == nil {
		return coalesce, true
	}
	changed := old.Generation != now.Generation ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!slices.Equal(old.Finalizers, now.Finalizers)
	return coalesce, changed
}

// nodeMatters drops heartbeats and whatever else no maintenance looks at.
func nodeMatters(old, now *corev1.Node) (time.Duration, bool) {
	if old == nil || now == nil {
		return coalesce, true
	}
	changed := old.UID != now.UID ||
		old.Spec.Unschedulable != now.Spec.Unschedulable ||
		old.Annotations[v1alpha1.CordonAnnotation] != now.Annotations[v1alpha1.CordonAnnotation] ||
		old.Annotations[v1alpha1.DrainTargetsAnnotation] != now.Annotations[v1alpha1.DrainTargetsAnnotation] ||
		maintenance.SuppressesAll(old) != maintenance.SuppressesAll(now) ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!maps.Equal(old.Labels, now.Labels) ||
		!maps.Equal(conditionStates(old), conditionStates(now))
	return coalesce, changed
}

// conditionStates is what a node says of itself, without its heartbeat.
func conditionStates(node *corev1.Node) map[corev1.NodeConditionType]corev1.NodeCondition {
	states := make(map[corev1.NodeConditionType]corev1.NodeCondition, len(node.Status.Conditions))
	for _, condition := range node.Status.Conditions {
		states[condition.Type] = corev1.NodeCondition{Status: condition.Status, Reason: condition.Reason}
	}
	return states
}

// podMatters drops the pods of nodes that are not under maintenance, and changes
// that the cache does not keep.
func (r *reconciler) podMatters(old, now *corev1.Pod) (time.Duration, bool) {
	if old == nil {
		return coalesce, r.reads(now)
	}
	if now == nil {
		return coalesce, r.reads(old)
	}
	if !r.reads(now) {
		return 0, false
	}
	was := *old
	was.ResourceVersion, was.Generation = now.ResourceVersion, now.Generation
	return coalesce, !equality.Semantic.DeepEqual(&was, now)
}

func (r *reconciler) reads(pod *corev1.Pod) bool {
	nodes := r.podNodes.Load()
	return nodes != nil && nodes.Has(pod.Spec.NodeName)
}

// evacuationMatters hurries when a request of ours comes or goes, or an
// Evacuation vanishes that may have stood in the way of a new one. What
// evacuators report only changes what our status says.
func (r *reconciler) evacuationMatters(old, now *v1alpha1.Evacuation) (time.Duration, bool) {
	switch {
	case now == nil:
		return coalesce, isOurs(old) || r.draining()
	case old == nil:
		return coalesce, isOurs(now)
	case isOurs(old) != isOurs(now):
		return coalesce, true
	default:
		return statusInterval, isOurs(now)
	}
}

// ruleMatters drops the rules of other namespaces, which are for Machines only.
func (r *reconciler) ruleMatters(old, now *v1alpha1.MachineDrainRule) (time.Duration, bool) {
	if old != nil && now != nil && old.Generation == now.Generation {
		return 0, false
	}
	return coalesce, r.draining() && cmp.Or(now, old).Namespace == r.namespace
}

// namespaceMatters drops all but labels: rules select by them.
func (r *reconciler) namespaceMatters(old, now *corev1.Namespace) (time.Duration, bool) {
	return coalesce, r.draining() && (old == nil || now == nil || !maps.Equal(old.Labels, now.Labels))
}

func (r *reconciler) draining() bool {
	nodes := r.podNodes.Load()
	return nodes != nil && nodes.Len() > 0
}
