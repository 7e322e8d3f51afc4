package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

// needsNode reports whether the Machine has no Node yet or is being deleted. In the local cluster
// reading it is cheap.
func needsNode(machine *v1alpha1.Machine, cluster *v1alpha1.Cluster) bool {
	return machine.DeletionTimestamp != nil || machine.Status.NodeRef == nil || workload.Identity(cluster) == workload.Local
}

// observeNode reads the Node of a Machine that needs it and, during a deletion, what is on the
// Node.
func (r *reconciler) observeNode(ctx context.Context, seen *observed) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	key, cluster := client.ObjectKeyFromObject(seen.Machine), seen.Cluster.Object
	if cluster == nil || !needsNode(seen.Machine, cluster) {
		seen.NodesUnneeded = cluster != nil
		r.release(key)
		return
	}
	connection, err := r.clusters.Use(cluster, key)
	place, at := workload.Place{Cluster: workload.Identity(cluster)}, view{cluster: client.ObjectKeyFromObject(cluster)}
	if err != nil {
		r.watch(key, place, at)
		seen.NodesProblem = err.Error()
		return
	}
	if !r.slots.take(place.Cluster, key) {
		seen.crowded = true
		return
	}
	seen.connection, at.evictions = connection, connection.Evictions
	r.watch(key, place, at)
	if seen.Nodes, err = nodesOf(ctx, connection, seen.Machine); err != nil {
		seen.NodesProblem, seen.unread = err.Error(), true
		return
	}
	own := lifecycle.Own(seen.Machine, seen.Nodes)
	if seen.Machine.DeletionTimestamp == nil || len(own) != 1 {
		return
	}
	seen.node, place.Node = own[0], own[0].Name
	r.watch(key, place, at)
	r.observePods(ctx, seen, connection.Client)
	observeVolumes(ctx, seen)
}

// watch indexes what the Machine depends on, and stops evictions in an earlier cluster of it.
func (r *reconciler) watch(machine types.NamespacedName, place workload.Place, at view) {
	if _, before, _ := r.views.Watch(machine, place, at); before.evictions != nil && before.evictions != at.evictions {
		before.evictions.Want(machine, nil, nil)
	}
}

func (r *reconciler) release(machine types.NamespacedName) {
	_, before, known := r.views.Unwatch(machine)
	if !known {
		return
	}
	r.views.logged.Delete(machine)
	if before.evictions != nil {
		before.evictions.Want(machine, nil, nil)
	}
	r.clusters.Release(before.cluster, machine)
}

// nodesOf returns the Nodes with the provider ID and the one in status.nodeRef; only that one if it
// has the provider ID.
func nodesOf(ctx context.Context, c *workload.Connection, machine *v1alpha1.Machine) (nodes []*corev1.Node, err error) {
	if ref := machine.Status.NodeRef; ref != nil {
		node := &corev1.Node{}
		found, err := c.Find(ctx, types.NamespacedName{Name: ref.Name}, node)
		if err != nil {
			return nil, fmt.Errorf("get node %s: %w", ref.Name, err)
		}
		if found {
			nodes = append(nodes, node)
		}
		if len(lifecycle.Own(machine, nodes)) > 0 {
			return nodes, nil
		}
	}
	if machine.Spec.ProviderID == "" {
		return nodes, nil
	}
	var list corev1.NodeList
	if err := c.Client.List(ctx, &list, client.MatchingFields{kube.NodeProviderField: machine.Spec.ProviderID}, client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list the nodes of provider ID %s: %w", machine.Spec.ProviderID, err)
	}
	return append(nodes, kube.Pointers(list.Items)...), nil
}

// confirmMissing asks the API server whether no Node has the provider ID. That lists all Nodes, but
// only once for a Machine: later ones come to the cache.
func (r *reconciler) confirmMissing(ctx context.Context, seen *observed) {
	key, uid := client.ObjectKeyFromObject(seen.Machine), seen.Machine.UID
	if asked, _ := r.confirmed.Load(key); asked == uid || seen.connection == nil {
		return
	}
	found, err := ownNodes(ctx, seen.connection.Live, seen.Machine)
	if err != nil {
		seen.NodesProblem, seen.unread = fmt.Sprintf("list the nodes: %v", err), true
		return
	}
	if len(found) == 0 {
		r.confirmed.Store(key, uid)
	}
	seen.Nodes = append(seen.Nodes, found...)
}

// nodesPage is the page size, which bounds what a remote cluster can send at once.
const nodesPage = 100

// ownNodes lists all Nodes page by page and returns those of the Machine.
func ownNodes(ctx context.Context, live client.Reader, machine *v1alpha1.Machine) (own []*corev1.Node, err error) {
	for next := ""; ; {
		var page corev1.NodeList
		if err := live.List(ctx, &page, client.Limit(nodesPage), client.Continue(next)); err != nil {
			return nil, err
		}
		own = append(own, lifecycle.Own(machine, kube.Pointers(page.Items))...)
		if next = page.Continue; next == "" {
			return own, nil
		}
	}
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=machinedrainrules,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes;pods;namespaces;persistentvolumeclaims;persistentvolumes,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments,verbs=list;watch

func (r *reconciler) observePods(ctx context.Context, seen *observed, from client.Reader) {
	var err error
	if seen.Drain, err = r.pods(ctx, seen, from); err != nil {
		seen.DrainProblem = err.Error()
	}
	seen.unread = seen.unread || err != nil || len(seen.Drain.Facts.DaemonSetErrors)+len(seen.Drain.Facts.NamespaceErrors) > 0
}

func (r *reconciler) pods(ctx context.Context, seen *observed, from client.Reader) (nodedrain.Snapshot, error) {
	c, node := seen.connection, seen.node.Name
	pods, err := c.Pods(ctx, from, node)
	if err != nil {
		return nodedrain.Snapshot{}, err
	}
	r.views.surround(client.ObjectKeyFromObject(seen.Machine), surroundingsOf(pods))
	var rules v1alpha1.MachineDrainRuleList
	if err := r.client.List(ctx, &rules, client.InNamespace(seen.Machine.Namespace), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return nodedrain.Snapshot{}, fmt.Errorf("list the MachineDrainRules of namespace %s: %w", seen.Machine.Namespace, err)
	}
	now, skewed := c.Now()
	return nodedrain.Snapshot{
		Now: now, ClockSkewed: skewed,
		Pods:    kube.Pointers(pods),
		Rules:   drainrule.ForMachine(kube.Pointers(rules.Items), seen.Machine.Labels, seen.Cluster.Object.Labels),
		Facts:   c.Facts(ctx, pods),
		Answers: c.Evictions.Refusals(client.ObjectKeyFromObject(seen.Machine)),
	}, nil
}
