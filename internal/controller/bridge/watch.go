package bridge

import (
	"cmp"
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/kube"
)

type controllerResult = reconcile.Result

// wake has Machines reconciled.
func (r *reconciler) wake(machines ...request) {
	if q := r.queue.Load(); q != nil {
		for _, machine := range machines {
			(*q).Add(machine)
		}
	}
}

// sources returns the watches of our own kinds and of nodes. Those of bridged kinds begin when
// there is a queue, so that none of their events is lost.
func (r *reconciler) sources(c cache.Cache) []source.TypedSource[request] {
	return []source.TypedSource[request]{
		source.TypedFunc[request](func(_ context.Context, q queue) error {
			r.queue.Store(&q)
			r.kinds.ready()
			return nil
		}),
		source.TypedKind(c, &v1alpha1.NodeMaintenance{}, handlerOf(r.ofMaintenance)),
		source.TypedKind(c, &v1alpha1.MachineDrainRule{}, handlerOf(r.ofRule)),
		source.TypedKind(c, &corev1.Node{}, handlerOf(ofNode)),
	}
}

// handlerOf wakes the Machines that a change is about.
func handlerOf[T client.Object](of func(old, now T) []request) handler.TypedFuncs[T, request] {
	return kube.OnEvent(func(_ context.Context, q queue, old, now T) {
		for _, one := range of(old, now) {
			q.Add(one)
		}
	})
}

func requestOf(bridge core.Name, namespace, name string) []request {
	if bridge == "" {
		return nil
	}
	return []request{{bridge, types.NamespacedName{Namespace: namespace, Name: name}}}
}

// ofMaintenance names the Machine that a maintenance was made for, and the one that has to
// wait because of its name. Each pod that leaves changes its status, and no decision.
func (r *reconciler) ofMaintenance(old, now *v1alpha1.NodeMaintenance) []request {
	switch {
	case now == nil:
		now = old
	case old != nil && core.ReadProgress(old) == core.ReadProgress(now):
		return nil
	}
	all := requestOf(core.MachineOf(now))
	if q, known := r.expected.Load(now.Name); known {
		all = append(all, q.(request))
	}
	return all
}

// ofNode names the Machines of a node that is new, of another one now, registered again, or
// gone.
func ofNode(old, now *corev1.Node) (all []request) {
	if old != nil && now != nil && old.UID == now.UID && old.Spec.ProviderID == now.Spec.ProviderID &&
		reflect.DeepEqual(requestOf(core.NodeOf(old)), requestOf(core.NodeOf(now))) {
		return nil
	}
	for _, node := range []*corev1.Node{old, now} {
		if node != nil {
			all = append(all, requestOf(core.NodeOf(node))...)
		}
	}
	return all
}

// machineHandler wakes a Machine when a field of it that is read has changed.
func (k *kinds) machineHandler(one *kind) toolscache.ResourceEventHandler {
	return kube.OnInform(func(old, now *unstructured.Unstructured) {
		if old == nil || now == nil || !reflect.DeepEqual(core.Read(old), core.Read(now)) {
			machine := cmp.Or(now, old)
			k.wake(requestOf(one.bridge, machine.GetNamespace(), machine.GetName())...)
		}
	})
}

// aroundHandler wakes all Machines of a Cluster or MachineSet when a field that they depend on has
// changed, and not when its status has.
func (k *kinds) aroundHandler(one *kind) toolscache.ResourceEventHandler {
	return kube.OnInform(func(old, now *unstructured.Unstructured) {
		if old == nil || now == nil || !reflect.DeepEqual(core.ReadAround(old), core.ReadAround(now)) {
			k.wakeWithin(one, cmp.Or(now, old).GetNamespace(), cmp.Or(now, old).GetName())
		}
	})
}

func (k *kinds) wakeWithin(one *kind, namespace, name string) {
	k.wake(k.machines(one, func(*unstructured.Unstructured) bool { return true }, client.InNamespace(namespace), client.MatchingFields{aroundField: name})...)
}

// ruleHandler wakes the Machines of a namespace that are being deleted.
func (k *kinds) ruleHandler(one *kind) toolscache.ResourceEventHandler {
	return kube.OnInform(func(old, now *unstructured.Unstructured) {
		k.wake(k.machines(one, deleting, client.InNamespace(cmp.Or(now, old).GetNamespace()))...)
	})
}

func deleting(machine *unstructured.Unstructured) bool { return machine.GetDeletionTimestamp() != nil }

// ofRule names the Machines that a rule of ours may be meant for.
func (r *reconciler) ofRule(old, now *v1alpha1.MachineDrainRule) (all []request) {
	namespace := client.InNamespace(cmp.Or(now, old).Namespace)
	for i := range r.kinds.all {
		if one := &r.kinds.all[i]; !one.rule.Empty() {
			all = append(all, r.kinds.machines(one, deleting, namespace)...)
		}
	}
	return all
}

// machines names Machines of a bridge. Before all are in the cache there are none: each is told
// of when it is read.
func (k *kinds) machines(one *kind, is func(*unstructured.Unstructured) bool, options ...client.ListOption) (all []request) {
	if !k.synced(one.machine) {
		return nil
	}
	ctx := context.Background()
	list, err := k.list(ctx, one.machine, options...)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Failed to list the Machines of another controller", "reason", err.Error())
	}
	for i := range list {
		if is(&list[i]) {
			all = append(all, requestOf(one.bridge, list[i].GetNamespace(), list[i].GetName())...)
		}
	}
	return all
}

// held returns the Machines of which something may wait for our clock to be trusted: those
// whose drain has an end.
func (r *reconciler) held(context.Context) (all []request) {
	for i := range r.kinds.all {
		all = append(all, r.kinds.machines(&r.kinds.all[i], func(machine *unstructured.Unstructured) bool {
			return deleting(machine) && core.Read(machine).DrainTimeout > 0
		})...)
	}
	return all
}
