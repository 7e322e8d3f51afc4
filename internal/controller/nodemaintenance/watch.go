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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/kube"
)

// coalesce is the time in which events gather before a pass.
const coalesce = 25 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[group.Member]

// relevance returns whose decision an event can change, and how soon the pass is due. Old is nil if
// the object was created, now is nil if it is gone.
type relevance[T client.Object] func(old, now T) (due time.Duration, concerned []group.Member)

func (r *reconciler) sources(c cache.Cache) []source.TypedSource[group.Member] {
	return []source.TypedSource[group.Member]{
		source.TypedKind(c, &v1alpha1.NodeMaintenance{}, handlerOf(r, r.maintenanceMatters)),
		source.TypedKind(c, &corev1.Node{}, handlerOf(r, r.nodeMatters)),
		source.TypedKind(c, &corev1.Pod{}, handlerOf(r, r.podMatters)),
		source.TypedKind(c, &v1alpha1.Evacuation{}, handlerOf(r, r.evacuationMatters)),
		source.TypedKind(c, &policyv1.PodDisruptionBudget{}, handlerOf(r, r.budgetMatters)),
		source.TypedKind(c, &v1alpha1.DrainRecord{}, handlerOf(r, recordMatters)),
		source.TypedKind(c, &v1alpha1.NodeAgent{}, handlerOf(r, r.agentMatters)),
		source.TypedKind(c, &v1alpha1.MachineDrainRule{}, handlerOf(r, r.ruleMatters)),
		source.TypedKind(c, &corev1.Namespace{}, handlerOf(r, r.namespaceMatters)),
	}
}

// handlerOf makes members due that an event concerns. The queue keeps the earliest time of an item, so
// that a burst of events costs one pass and no event delays it.
func handlerOf[T client.Object](r *reconciler, matters relevance[T]) handler.TypedFuncs[T, group.Member] {
	return kube.OnEvent(func(_ context.Context, q queue, old, now T) {
		r.schedule.attach(q.AddAfter)
		due, concerned := matters(old, now)
		r.schedule.touch(r.clock.Now(), due, concerned...)
	})
}

// maintenanceMatters drops our own status writes.
func (r *reconciler) maintenanceMatters(old, now *v1alpha1.NodeMaintenance) (time.Duration, []group.Member) {
	if now == nil {
		r.forget(old.Name)
		return coalesce, r.schedule.deleteMaintenance(old.Name)
	}
	parted := r.schedule.setMaintenance(now)
	if old == nil || old.Generation != now.Generation ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		old.Annotations[v1alpha1.HandedOverAnnotation] != now.Annotations[v1alpha1.HandedOverAnnotation] ||
		old.Annotations[v1alpha1.RolloutAttemptAnnotation] != now.Annotations[v1alpha1.RolloutAttemptAnnotation] ||
		old.Annotations[v1alpha1.BridgePausedAnnotation] != now.Annotations[v1alpha1.BridgePausedAnnotation] ||
		old.Annotations[v1alpha1.AllowScaleDownAnnotation] != now.Annotations[v1alpha1.AllowScaleDownAnnotation] ||
		!slices.Equal(old.Finalizers, now.Finalizers) {
		return coalesce, append(parted, group.Maintenance(now.Name))
	}
	return coalesce, parted
}

// nodeMatters drops heartbeats, fields that no decision reads, and nodes without maintenance.
func (r *reconciler) nodeMatters(old, now *corev1.Node) (time.Duration, []group.Member) {
	if now == nil {
		// Its pods may still have requests.
		r.refusals.forgetAll(group.Node(old.Name))
		return coalesce, append(r.schedule.deleteNode(old.Name), group.Node(old.Name))
	}
	parted := r.schedule.setNode(now)
	if (old == nil || nodeChanged(old, now)) && (r.schedule.selected(now.Name) || r.watched.has(now.Name) || maintenance.Marked(now)) {
		return coalesce, append(parted, group.Node(now.Name))
	}
	return coalesce, parted
}

func nodeChanged(old, now *corev1.Node) bool {
	return old.UID != now.UID ||
		old.Spec.Unschedulable != now.Spec.Unschedulable ||
		old.Annotations[v1alpha1.CordonAnnotation] != now.Annotations[v1alpha1.CordonAnnotation] ||
		old.Annotations[v1alpha1.DrainTargetsAnnotation] != now.Annotations[v1alpha1.DrainTargetsAnnotation] ||
		old.Annotations[v1alpha1.HandedOverByAnnotation] != now.Annotations[v1alpha1.HandedOverByAnnotation] ||
		old.Status.NodeInfo != now.Status.NodeInfo ||
		cordon.SuppressesAll(old) != cordon.SuppressesAll(now) ||
		!maps.Equal(cordon.Protections(old), cordon.Protections(now)) ||
		!slices.Equal(foreigndrain.Of(old), foreigndrain.Of(now)) ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!maps.Equal(old.Labels, now.Labels) ||
		!maps.Equal(conditionStates(old), conditionStates(now))
}

// conditionStates returns the conditions of a node without heartbeats. A node that was not Ready
// between two events shows it only by the transition time.
func conditionStates(node *corev1.Node) map[corev1.NodeConditionType]corev1.NodeCondition {
	states := make(map[corev1.NodeConditionType]corev1.NodeCondition, len(node.Status.Conditions))
	for _, condition := range node.Status.Conditions {
		state := corev1.NodeCondition{Status: condition.Status, Reason: condition.Reason}
		if condition.Type == corev1.NodeReady {
			state.LastTransitionTime = metav1.Time{Time: condition.LastTransitionTime.UTC()}
		}
		states[condition.Type] = state
	}
	return states
}

// podMatters drops the pods of nodes that are not watched, and changes that the cache does not keep.
func (r *reconciler) podMatters(old, now *corev1.Pod) (time.Duration, []group.Member) {
	pod := cmp.Or(now, old)
	watched, planned := r.watched.has(pod.Spec.NodeName), r.plans.has(pod.Spec.NodeName)
	if !watched && !planned {
		return 0, nil
	}
	if old != nil && now != nil {
		was := *old
		was.ResourceVersion, was.Generation = now.ResourceVersion, now.Generation
		if equality.Semantic.DeepEqual(&was, now) {
			return 0, nil
		}
	}
	if planned {
		r.replan(onNode(pod.Spec.NodeName))
	}
	if !watched {
		return 0, nil
	}
	return coalesce, []group.Member{group.Node(pod.Spec.NodeName)}
}

// evacuationMatters is urgent if a request of ours comes or goes, or an Evacuation vanishes that may
// have blocked a new one. Reports of evacuators only change our status.
func (r *reconciler) evacuationMatters(old, now *v1alpha1.Evacuation) (time.Duration, []group.Member) {
	e := cmp.Or(now, old)
	name := e.Annotations[v1alpha1.NodeAnnotation]
	if name == "" {
		// The annotation was removed, or it came without our webhook.
		return statusInterval, r.watched.withPodsIn(e.Namespace, everyNode)
	}
	node := []group.Member{group.Node(name)}
	switch ours := isOurs(e); {
	case now == nil && (ours || r.watched.has(name)):
		return coalesce, node
	case now == nil:
		return 0, nil
	case old == nil && ours, old != nil && isOurs(old) != ours:
		return coalesce, node
	case ours:
		return statusInterval, node
	default:
		return 0, nil
	}
}

// requestsMatter is urgent if pods may have to be requested in another way. Reports of responders only
// change our status.
func (r *reconciler) requestsMatter(node string, urgent bool) {
	due, concerned := statusInterval, []group.Member{group.Node(node)}
	if node == "" {
		concerned = r.watched.all()
	} else if !r.watched.has(node) && !urgent {
		return
	}
	if urgent {
		due = coalesce
	}
	r.schedule.touch(r.clock.Now(), due, concerned...)
}

// budgetMatters is urgent if the budgets of pods that stay may have changed. Allowed disruptions only
// change our status; the drain lock controller watches them and changes the DrainRecord.
func (r *reconciler) budgetMatters(old, now *policyv1.PodDisruptionBudget) (time.Duration, []group.Member) {
	namespace := cmp.Or(now, old).Namespace
	r.replan(inNamespace(namespace))
	if old == nil || now == nil || old.Generation != now.Generation {
		if urgent := r.watched.withPodsIn(namespace, func(node *watchedNode) bool { return node.inPlace }); len(urgent) > 0 {
			return coalesce, urgent
		}
	}
	return statusInterval, r.watched.withPodsIn(namespace, func(node *watchedNode) bool { return node.blocked || node.inPlace })
}

// recordMatters drops fields of a DrainRecord that no decision reads.
func recordMatters(old, now *v1alpha1.DrainRecord) (time.Duration, []group.Member) {
	node := []group.Member{group.Node(cmp.Or(now, old).Name)}
	if old == nil || now == nil || old.UID != now.UID || old.Generation != now.Generation ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(old.Status, now.Status) {
		return coalesce, node
	}
	return 0, nil
}

// ruleMatters drops the rules of other namespaces, which are for Machines.
func (r *reconciler) ruleMatters(old, now *v1alpha1.MachineDrainRule) (time.Duration, []group.Member) {
	if cmp.Or(now, old).Namespace != r.namespace || old != nil && now != nil && old.Generation == now.Generation {
		return 0, nil
	}
	r.replan(every)
	return coalesce, r.watched.all()
}

// namespaceMatters drops all but labels, by which rules select.
func (r *reconciler) namespaceMatters(old, now *corev1.Namespace) (time.Duration, []group.Member) {
	if old != nil && now != nil && maps.Equal(old.Labels, now.Labels) {
		return 0, nil
	}
	r.replan(inNamespace(cmp.Or(now, old).Name))
	return coalesce, r.watched.withPodsIn(cmp.Or(now, old).Name, everyNode)
}

func everyNode(*watchedNode) bool { return true }

// held schedules the maintenances that wait for a clock that is trusted.
func (r *reconciler) held(ctx context.Context) []group.Member {
	var all v1alpha1.NodeMaintenanceList
	// What cannot be read has not been decided about either.
	if err := r.list(ctx, &all); err == nil {
		for i := range all.Items {
			if m := &all.Items[i]; (m.Spec.CompleteWhen != nil || m.Spec.Deadline != nil || m.Labels[v1alpha1.RolloutLabel] != "" || bridge.OfMachine(m)) && m.Spec.Stage == v1alpha1.StageDrain {
				r.schedule.touch(r.clock.Now(), 0, group.Maintenance(m.Name))
			}
		}
	}
	return nil
}
