package machine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

// coalesce collects events of a Machine for one pass.
const coalesce = 25 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// sources are the watches of the local cluster. Remote clusters, named objects and evictions also
// wake Machines.
func (r *reconciler) sources(c cache.Cache) []source.Source {
	return []source.Source{
		source.Func(func(_ context.Context, q queue) error {
			r.queue.Store(&q)
			return nil
		}),
		source.Kind(c, &v1alpha1.Machine{}, handlerOf(r.machineChanged)),
		source.Kind(c, &v1alpha1.Cluster{}, handlerOf(r.clusterChanged)),
		source.Kind(c, &v1alpha1.MachineDrainRule{}, handlerOf(r.ruleChanged)),
	}
}

// handlerOf wakes the Machines affected by a change.
func handlerOf[T client.Object](matters func(old, now T) []types.NamespacedName) handler.TypedFuncs[T, reconcile.Request] {
	return kube.OnEvent(func(_ context.Context, q queue, old, now T) { wake(q, matters(old, now)) })
}

func wake(q queue, machines []types.NamespacedName) {
	for _, machine := range machines {
		q.AddAfter(reconcile.Request{NamespacedName: machine}, coalesce)
	}
}

// machineChanged ignores our own status writes. A control-plane Machine also affects those that are
// being deleted, a deleted Machine those that wait for its Node.
func (r *reconciler) machineChanged(old, now *v1alpha1.Machine) []types.NamespacedName {
	if old != nil && now != nil && same(old, now) && old.Status.NodeRef == nil == (now.Status.NodeRef == nil) {
		return nil
	}
	newer := cmp.Or(now, old)
	machines := []types.NamespacedName{client.ObjectKeyFromObject(newer)}
	if controlPlane(old) != controlPlane(now) {
		machines = append(machines, r.machines(newer.Namespace, kube.MachineClusterField, newer.Spec.ClusterName)...)
	}
	if now == nil && newer.Spec.ProviderID != "" {
		machines = append(machines, r.machines(newer.Namespace, kube.MachineProviderField, newer.Spec.ProviderID)...)
	}
	return machines
}

func controlPlane(m *v1alpha1.Machine) bool {
	return m != nil && m.DeletionTimestamp == nil && lifecycle.InControlPlane(m)
}

func (r *reconciler) clusterChanged(old, now *v1alpha1.Cluster) []types.NamespacedName {
	if old != nil && now != nil && same(old, now) &&
		old.Status.ControlPlaneMachinesSeen == now.Status.ControlPlaneMachinesSeen {
		return nil
	}
	newer := cmp.Or(now, old)
	return r.machines(newer.Namespace, kube.MachineClusterField, newer.Name)
}

func (r *reconciler) ruleChanged(old, now *v1alpha1.MachineDrainRule) []types.NamespacedName {
	return r.views.within(cmp.Or(now, old).Namespace)
}

// same reports whether two versions differ only in status.
func same(old, now client.Object) bool {
	return old.GetGeneration() == now.GetGeneration() &&
		old.GetDeletionTimestamp().Equal(now.GetDeletionTimestamp()) &&
		maps.Equal(old.GetLabels(), now.GetLabels()) &&
		maps.Equal(old.GetAnnotations(), now.GetAnnotations()) &&
		slices.Equal(old.GetFinalizers(), now.GetFinalizers()) &&
		equality.Semantic.DeepEqual(old.GetOwnerReferences(), now.GetOwnerReferences())
}

func (r *reconciler) follow(registry *workload.Registry) {
	registry.Watch(&corev1.Node{}, r.nodeChanged)
	registry.Watch(&corev1.Pod{}, r.podChanged)
	registry.Watch(&storagev1.VolumeAttachment{}, r.attachmentChanged)
	registry.Watch(&corev1.PersistentVolume{}, r.volumeChanged)
	registry.Watch(&appsv1.DaemonSet{}, r.surroundingsChanged(kindDaemonSet))
	registry.Watch(&corev1.Namespace{}, r.surroundingsChanged(kindNamespace))
	registry.Watch(&corev1.PersistentVolumeClaim{}, r.surroundingsChanged(kindClaim))
	registry.OnChange(func(cluster types.NamespacedName) {
		r.wake(r.machines(cluster.Namespace, kube.MachineClusterField, cluster.Name)...)
	})
	registry.OnEvictions(func(machine types.NamespacedName) { r.wake(machine) })
}

func (r *reconciler) nodeChanged(cluster types.NamespacedName, old, now client.Object) {
	if old != nil && now != nil && !nodeMatters(old.(*corev1.Node), now.(*corev1.Node)) {
		return
	}
	node := cmp.Or(now, old).(*corev1.Node)
	r.wake(r.machines(cluster.Namespace, kube.MachineNodeField, node.Name)...)
	if node.Spec.ProviderID != "" {
		r.wake(r.machines(cluster.Namespace, kube.MachineProviderField, node.Spec.ProviderID)...)
	}
}

// nodeMatters ignores heartbeats and other fields that are not used.
func nodeMatters(old, now *corev1.Node) bool {
	return old.UID != now.UID ||
		old.Spec.ProviderID != now.Spec.ProviderID ||
		old.Spec.Unschedulable != now.Spec.Unschedulable ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		ready(old) != ready(now) ||
		!slices.Equal(old.Status.VolumesAttached, now.Status.VolumesAttached)
}

func ready(node *corev1.Node) corev1.ConditionStatus {
	if condition := podclass.NodeCondition(node, corev1.NodeReady); condition != nil {
		return condition.Status
	}
	return corev1.ConditionUnknown
}

func (r *reconciler) podChanged(cluster types.NamespacedName, old, now client.Object) {
	pod := cmp.Or(now, old).(*corev1.Pod)
	r.wakeUnlessAlike(r.views.Users(workload.Place{Cluster: cluster, Node: pod.Spec.NodeName}), old, now)
}

func (r *reconciler) attachmentChanged(cluster types.NamespacedName, old, now client.Object) {
	attachment := cmp.Or(now, old).(*storagev1.VolumeAttachment)
	r.wakeUnlessAlike(r.views.Users(workload.Place{Cluster: cluster, Node: attachment.Spec.NodeName}), old, now)
}

// volumeChanged wakes all Machines of the cluster, because volumes have several names.
func (r *reconciler) volumeChanged(cluster types.NamespacedName, old, now client.Object) {
	r.wakeUnlessAlike(r.views.in(cluster), old, now)
}

// surroundingsChanged wakes the Machines with pods related to the object.
func (r *reconciler) surroundingsChanged(kind string) func(cluster types.NamespacedName, old, now client.Object) {
	return func(cluster types.NamespacedName, old, now client.Object) {
		object := surrounding{kind, client.ObjectKeyFromObject(cmp.Or(now, old))}
		r.wakeUnlessAlike(r.views.around(cluster, object), old, now)
	}
}

// wakeUnlessAlike ignores changes of fields that the cache drops.
func (r *reconciler) wakeUnlessAlike(machines []types.NamespacedName, old, now client.Object) {
	if len(machines) > 0 && !alike(old, now) {
		r.wake(machines...)
	}
}

func alike(old, now client.Object) bool {
	if old == nil || now == nil {
		return false
	}
	was := old.DeepCopyObject().(client.Object)
	was.SetResourceVersion(now.GetResourceVersion())
	was.SetGeneration(now.GetGeneration())
	return equality.Semantic.DeepEqual(was, now)
}

func (r *reconciler) objectChanged(kind schema.GroupKind, key types.NamespacedName) {
	named := kube.RefKey(kind, key.Name)
	r.wake(r.machines(key.Namespace, kube.MachineRefField, named)...)
	var clusters v1alpha1.ClusterList
	if !r.find(&clusters, key.Namespace, kube.ClusterRefField, named) {
		return
	}
	for i := range clusters.Items {
		r.wake(r.machines(key.Namespace, kube.MachineClusterField, clusters.Items[i].Name)...)
	}
}

// machines finds Machines by an index; an empty namespace means all.
func (r *reconciler) machines(namespace, field, value string) []types.NamespacedName {
	var list v1alpha1.MachineList
	if !r.find(&list, namespace, field, value) {
		return nil
	}
	found := make([]types.NamespacedName, len(list.Items))
	for i := range list.Items {
		found[i] = client.ObjectKeyFromObject(&list.Items[i])
	}
	return found
}

// find reads the current cache. A Machine that is not in it yet is reconciled once it is.
func (r *reconciler) find(list client.ObjectList, namespace, field, value string) bool {
	err := r.client.List(context.Background(), list, client.InNamespace(namespace), client.MatchingFields{field: value},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	return err == nil
}
