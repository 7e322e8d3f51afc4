package drainlock

import (
	"cmp"
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

func (n *nodes) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(c, &v1alpha1.DrainRecord{}, kube.OnChange(n.ofRecord)),
		source.Kind(c, &policyv1.PodDisruptionBudget{}, kube.OnChange(n.ofBudget)),
		source.Kind(c, &corev1.Pod{}, kube.OnChange(n.ofPod)),
		source.Kind(c, &corev1.Node{}, kube.OnChange(n.ofNode)),
		source.Kind(c, &coordinationv1.Lease{}, kube.OnChange(n.ofMutex)),
	}
}

// ofRecord also names waiting records if the node may no longer need the mutex.
func (n *nodes) ofRecord(ctx context.Context, old, now *v1alpha1.DrainRecord) []types.NamespacedName {
	switch {
	case old == nil:
		return []types.NamespacedName{{Name: now.Name}}
	case now == nil:
		return append(n.waiting(ctx), types.NamespacedName{Name: old.Name})
	case old.Generation != now.Generation || len(old.Status.GivenUp) != len(now.Status.GivenUp):
		return append(n.waiting(ctx), types.NamespacedName{Name: now.Name})
	case cannotGo(now) && !cannotGo(old):
		return append(n.behind(ctx, now), types.NamespacedName{Name: now.Name})
	}
	return []types.NamespacedName{{Name: now.Name}}
}

// cannotGo reports whether the node of a record cannot take its locks now, so that others can.
func cannotGo(record *v1alpha1.DrainRecord) bool {
	told := meta.FindStatusCondition(record.Status.Conditions, v1alpha1.ConditionLocked)
	return told != nil && (told.Reason == v1alpha1.ReasonWaitingForBudget || told.Reason == v1alpha1.ReasonBudgetRefused)
}

// behind returns the waiting records that share a lock with first.
func (n *nodes) behind(ctx context.Context, first *v1alpha1.DrainRecord) []types.NamespacedName {
	keys := sets.New[types.NamespacedName]()
	for _, b := range first.Spec.Budgets {
		keys.Insert(n.records(ctx, waits, client.MatchingFields{kube.RecordBudgetField: keyOf(b).String()})...)
	}
	return keys.UnsortedList()
}

// ofBudget ignores changes that no decision depends on, such as labels.
func (n *nodes) ofBudget(ctx context.Context, old, now *policyv1.PodDisruptionBudget) []types.NamespacedName {
	if old != nil && now != nil && !budgetChanged(old, now) {
		return nil
	}
	keys := sets.New[types.NamespacedName]()
	for _, budget := range []*policyv1.PodDisruptionBudget{old, now} {
		if budget == nil {
			continue
		}
		keys.Insert(n.records(ctx, func(record *v1alpha1.DrainRecord) bool { return core.Asks(record, budget) },
			client.MatchingFields{kube.RecordBudgetField: client.ObjectKeyFromObject(budget).String()})...)
		if node := core.Locker(budget); node != "" {
			keys.Insert(types.NamespacedName{Name: node})
		}
	}
	return keys.UnsortedList()
}

func budgetChanged(old, now *policyv1.PodDisruptionBudget) bool {
	return old.UID != now.UID || old.Generation != now.Generation || lockChanged(old, now) ||
		!equality.Semantic.DeepEqual(old.Status, now.Status)
}

func lockChanged(old, now *policyv1.PodDisruptionBudget) bool {
	was, had := old.Annotations[v1alpha1.LockAnnotation]
	is, has := now.Annotations[v1alpha1.LockAnnotation]
	return was != is || had != has
}

// ofPod names the record of the node of the pod. A record that the cache does not show yet is
// reconciled as soon as it does.
func (n *nodes) ofPod(ctx context.Context, old, now *corev1.Pod) []types.NamespacedName {
	pod := cmp.Or(now, old)
	records := n.recorded(ctx, pod.Spec.NodeName)
	if len(records) > 0 && old != nil && now != nil && stateOf(old) == stateOf(now) {
		return nil
	}
	return records
}

// ofNode names a node with a record or promise whose boot, readiness or promise has changed. When a
// promise is removed, all waiting records are named.
func (n *nodes) ofNode(ctx context.Context, old, now *corev1.Node) []types.NamespacedName {
	one := cmp.Or(now, old)
	if old != nil && now != nil && old.Status.NodeInfo.BootID == now.Status.NodeInfo.BootID && podclass.NodeReady(old) == podclass.NodeReady(now) &&
		old.Annotations[v1alpha1.RebootPromiseAnnotation] == now.Annotations[v1alpha1.RebootPromiseAnnotation] {
		return nil
	}
	names := n.recorded(ctx, one.Name)
	if len(names) == 0 && core.Promised(now) {
		names = []types.NamespacedName{{Name: one.Name}}
	}
	if core.Promised(old) && !core.Promised(now) {
		names = append(names, n.waiting(ctx)...)
	}
	return names
}

// recorded names the record of a node if it has one.
func (n *nodes) recorded(ctx context.Context, node string) []types.NamespacedName {
	key := types.NamespacedName{Name: node}
	if node == "" || n.client.Get(ctx, key, &v1alpha1.DrainRecord{}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency) != nil {
		return nil
	}
	return []types.NamespacedName{key}
}

// podState is the part of a pod that decisions depend on.
type podState struct {
	uid                          types.UID
	node                         string
	ready, terminating, terminal bool
	containers                   string
}

func stateOf(pod *corev1.Pod) podState {
	return podState{
		uid: pod.UID, node: pod.Spec.NodeName, terminating: pod.DeletionTimestamp != nil, terminal: podclass.Terminal(pod),
		ready: podclass.Ready(pod), containers: core.Containers(pod),
	}
}

func (n *nodes) ofMutex(ctx context.Context, old, now *coordinationv1.Lease) []types.NamespacedName {
	if old != nil && now != nil && equality.Semantic.DeepEqual(old.Spec, now.Spec) {
		return nil
	}
	return n.waiting(ctx)
}

// waiting names the records that may need the mutex.
func (n *nodes) waiting(ctx context.Context) []types.NamespacedName {
	return n.records(ctx, waits)
}

func waits(record *v1alpha1.DrainRecord) bool { return !record.Spec.Complete && !core.Held(record) }

func (n *nodes) records(ctx context.Context, wanted func(*v1alpha1.DrainRecord) bool, options ...client.ListOption) []types.NamespacedName {
	var names []types.NamespacedName
	for _, record := range kube.Cached[*v1alpha1.DrainRecord](ctx, n.client, &v1alpha1.DrainRecordList{}, options...) {
		if wanted(record) {
			names = append(names, types.NamespacedName{Name: record.Name})
		}
	}
	return names
}

func (k *keeper) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(c, &policyv1.PodDisruptionBudget{}, kube.OnChange(k.ofBudget)),
		source.Kind(c, &v1alpha1.DrainRecord{}, kube.OnChange(k.ofRecord)),
	}
}

// ofBudget names a budget whose lock has changed.
func (k *keeper) ofBudget(_ context.Context, old, now *policyv1.PodDisruptionBudget) []types.NamespacedName {
	none := &policyv1.PodDisruptionBudget{}
	object := now
	if old == nil {
		old = none
	}
	if now == nil {
		object, now = old, none
	}
	if !lockChanged(old, now) {
		return nil
	}
	return []types.NamespacedName{client.ObjectKeyFromObject(object)}
}

// ofRecord names the budgets locked for a node whose record was deleted.
func (k *keeper) ofRecord(ctx context.Context, old, now *v1alpha1.DrainRecord) []types.NamespacedName {
	if now != nil {
		return nil
	}
	return k.locked(ctx, func(hold budget.Hold) bool {
		_, node, ofDrain := hold.Drain()
		return ofDrain && node == old.Name
	})
}

func (k *keeper) locked(ctx context.Context, such func(budget.Hold) bool) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, one := range kube.Cached[*policyv1.PodDisruptionBudget](ctx, k.client, &policyv1.PodDisruptionBudgetList{}) {
		hold, _ := budget.LockOf(one, time.Time{}, k.longest)
		if hold.Holder != "" && such(hold) {
			keys = append(keys, client.ObjectKeyFromObject(one))
		}
	}
	return keys
}
