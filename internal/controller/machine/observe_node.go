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

// needsNode is true until the Machine has its Node, and again while it is being
// deleted. In the cluster that Ebbtide runs in, a look at it costs nothing.
func needsNode(machine *v1alpha1.Machine, cluster *v1alpha1.Cluster) bool {
	return machine.DeletionTimestamp != nil || machine.Status.NodeRef == nil || workload.Identity(cluster) == workload.Local
}

// observeNode reads the Node of a Machine that needs it and, if the Machine is
// being deleted, what is on the Node.
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
		r.look(key, place, at)
		seen.NodesProblem = err.Error()
		return
	}
	if !r.turns.take(place.Cluster, key) {
		seen.crowded = true
		return
	}
	seen.connection, at.evictions = connection, connection.Evictions
	r.look(key, place, at)
	if seen.Nodes, err = nodesOf(ctx, connection, seen.Machine); err != nil {
		seen.NodesProblem, seen.unread = err.Error(), true
		return
	}
	own := lifecycle.Own(seen.Machine, seen.Nodes)
	if seen.Machine.DeletionTimestamp == nil || len(own) != 1 {
		return
	}
	seen.node, place.Node = own[0], own[0].Name
	r.look(key, place, at)
	r.observePods(ctx, seen, connection.Client)
	observeVolumes(ctx, seen)
}

// look notes what the Machine looks at. Whoever was to evict its pods elsewhere,
// before its Cluster became another one, does so no more.
func (r *reconciler) look(machine types.NamespacedName, place workload.Place, at view) {
	if _, before, _ := r.views.Watch(machine, place, at); before.evictions != nil && before.evictions != at.evictions {
		before.evictions.Want(machine, nil, nil)
	}
}

// release says that the Machine does not need its Node any more.
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

// nodesOf returns the Nodes that have the Machine's provider ID and the one that
// it refers to: only that one if it has it.
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

// askForNode asks the API server whether there is really no Node of the Machine's
// provider ID, by which nobody can select: a look at all of them, once in the
// life of a Machine. What comes after that comes to the cache.
func (r *reconciler) askForNode(ctx context.Context, seen *observed) {
	key, uid := client.ObjectKeyFromObject(seen.Machine), seen.Machine.UID
	if asked, _ := r.asked.Load(key); asked == uid || seen.connection == nil {
		return
	}
	found, err := ownNodes(ctx, seen.connection.Live, seen.Machine)
	if err != nil {
		seen.NodesProblem, seen.unread = fmt.Sprintf("list the nodes: %v", err), true
		return
	}
	if len(found) == 0 {
		r.asked.Store(key, uid)
	}
	seen.Nodes = append(seen.Nodes, found...)
}

// nodesPage is how many nodes an API server is asked for at a time: what a remote
// cluster may say at once is bounded.
const nodesPage = 100

// ownNodes asks the API server for all nodes, page by page, and returns the Machine's.
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

// observePods reads the pods of the Node, and how to treat them.
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
		Answers: c.Evictions.Answers(client.ObjectKeyFromObject(seen.Machine)),
	}, nil
}
