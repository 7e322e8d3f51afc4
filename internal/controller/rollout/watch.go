package rollout

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

func (r *reconciler) sources(c cache.Cache) []source.TypedSource[pass] {
	return []source.TypedSource[pass]{
		source.TypedFunc[pass](func(_ context.Context, q kube.Queue[pass]) error {
			wake := func() { q.Add(pass{}) }
			r.wake.Store(&wake)
			return nil
		}),
		source.TypedKind(c, &v1alpha1.NodeRollout{}, kube.OnEvent(r.rolloutMatters)),
		source.TypedKind(c, &v1alpha1.NodeBudget{}, kube.OnEvent(r.budgetMatters)),
		source.TypedKind(c, &v1alpha1.NodeMaintenance{}, kube.OnEvent(r.maintenanceMatters)),
		source.TypedKind(c, &corev1.Node{}, kube.OnEvent(r.nodeMatters)),
	}
}

func (r *reconciler) rolloutMatters(_ context.Context, q kube.Queue[pass], old, now *v1alpha1.NodeRollout) {
	if now == nil {
		r.rollouts.gone(old)
	} else {
		r.any.Store(true)
	}
	q.Add(pass{})
}

func (r *reconciler) maintenanceMatters(_ context.Context, q kube.Queue[pass], old, now *v1alpha1.NodeMaintenance) {
	if now == nil {
		r.maintenances.gone(old)
	}
	if (r.any.Load() || isOfRollout(*cmp.Or(now, old))) && (old == nil || now == nil || maintenanceChanged(old, now)) {
		q.Add(pass{})
	}
}

// maintenanceChanged ignores the progress of pods.
func maintenanceChanged(old, now *v1alpha1.NodeMaintenance) bool {
	return old.Generation != now.Generation || metaChanged(old, now) || len(old.Status.StageStatuses) != len(now.Status.StageStatuses) ||
		!equality.Semantic.DeepEqual(old.Status.Conditions, now.Status.Conditions)
}

func metaChanged(old, now client.Object) bool {
	deletion := func(object client.Object) *metav1.Time { return object.GetDeletionTimestamp() }
	return old.GetUID() != now.GetUID() || !deletion(old).Equal(deletion(now)) ||
		!maps.Equal(old.GetLabels(), now.GetLabels()) || !maps.Equal(old.GetAnnotations(), now.GetAnnotations()) ||
		!equality.Semantic.DeepEqual(old.GetFinalizers(), now.GetFinalizers())
}

func (r *reconciler) nodeMatters(_ context.Context, q kube.Queue[pass], old, now *corev1.Node) {
	if r.any.Load() && (old == nil || now == nil || nodeChanged(old, now)) {
		q.Add(pass{})
	}
}

// nodeChanged ignores taints, annotations and heartbeats, except those of conditions that are True:
// after a boot, they tell whether a node still needs maintenance.
func nodeChanged(old, now *corev1.Node) bool {
	return old.UID != now.UID || !old.DeletionTimestamp.Equal(now.DeletionTimestamp) || !maps.Equal(old.Labels, now.Labels) ||
		old.Spec.Unschedulable != now.Spec.Unschedulable || podclass.NodeReady(old) != podclass.NodeReady(now) ||
		old.Status.NodeInfo != now.Status.NodeInfo || !slices.EqualFunc(trueConditions(old), trueConditions(now), sameCondition)
}

// trueConditions returns the conditions that are True, but for Ready.
func trueConditions(node *corev1.Node) (all []corev1.NodeCondition) {
	for _, condition := range node.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Type != corev1.NodeReady {
			all = append(all, condition)
		}
	}
	return all
}

func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.LastTransitionTime.Equal(&b.LastTransitionTime) && a.LastHeartbeatTime.Equal(&b.LastHeartbeatTime)
}
