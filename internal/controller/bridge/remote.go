package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

// foreign begins the names of what we use clusters as: no name of a Cluster or Machine of
// ours has a slash, so that theirs are never mixed up.
const foreign = "cluster.x-k8s.io/"

// clusters connects to the clusters of Machines; it is a *workload.Registry.
type clusters interface {
	Use(cluster *v1alpha1.Cluster, user types.NamespacedName) (*workload.Connection, error)
	Release(cluster, user types.NamespacedName)
}

// share returns the cluster that a Machine looks at, or else its namespace. A cluster that hangs
// holds up no other; unlike a namespace, it has a slash in its name.
func (r *reconciler) share(q request) string {
	if at, _, known := r.watchIndex.Of(q); known {
		return at.Cluster.String()
	}
	return q.Namespace
}

// inCluster returns the Machines that watch any node of a cluster.
func (r *reconciler) inCluster(cluster types.NamespacedName) []request {
	return r.watchIndex.Where(func(_ request, at workload.Place, _ *workload.Connection) bool { return at.Cluster == cluster })
}

// drainOf holds the progress of a drain in another cluster and the means to continue it.
type drainOf struct {
	connection *workload.Connection
	node       *corev1.Node
	decision   nodedrain.Decision
}

func userOf(q request) types.NamespacedName {
	return types.NamespacedName{Namespace: q.Namespace, Name: foreign + q.Name}
}

// clusterOf returns how the cluster of a Machine is reached: by the Secret of Cluster API's contract.
func clusterOf(seen *observed) *v1alpha1.Cluster {
	m := seen.Machine
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Ref.Namespace, Name: foreign + m.Around, UID: seen.Around.UID},
		Spec:       v1alpha1.ClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: m.Around + "-kubeconfig", Key: "value"}},
	}
}

// observeElsewhere reads how the drain goes. What cannot be read is no yes. It returns false,
// and has read nothing, if the pass does not have a worker of that cluster.
func (r *reconciler) observeElsewhere(ctx context.Context, q request, seen *observed) (read bool) {
	cluster := clusterOf(seen)
	at := workload.Place{Cluster: client.ObjectKeyFromObject(cluster), Node: seen.Machine.Node}
	// Before anything is asked: what changes from now on wakes the Machine.
	if before, _, known := r.watchIndex.Watch(q, at, nil); !known || before.Cluster != at.Cluster {
		return false
	}
	connection, err := r.clusters.Use(cluster, userOf(q))
	switch {
	case errors.Is(err, workload.ErrConnecting):
		return true // That passes by itself.
	case err != nil:
		seen.Remote = &core.Remote{Problem: strings.ReplaceAll(err.Error(), foreign, "")}
		return true
	}
	r.watchIndex.Watch(q, at, connection)
	drain, err := r.drainOf(ctx, seen, connection, connection.Client)
	if err == nil && drain.decision.Done {
		// A cache that is behind knows nothing of what came last.
		drain, err = r.drainOf(ctx, seen, connection, connection.Live)
	}
	if err != nil {
		seen.Remote = &core.Remote{Problem: err.Error()}
		return true
	}
	seen.drain = drain
	decision := &drain.decision
	seen.Remote = &core.Remote{Done: decision.Done, Left: len(decision.Left()), Report: decision.Message, Failed: decision.Failed}
	return true
}

func (r *reconciler) drainOf(ctx context.Context, seen *observed, c *workload.Connection, from client.Reader) (*drainOf, error) {
	name := seen.Machine.Node
	node := &corev1.Node{}
	switch found, err := c.Find(ctx, types.NamespacedName{Name: name}, node); {
	case err != nil:
		return nil, fmt.Errorf("get node %s: %w", name, err)
	case !found:
		return &drainOf{connection: c, decision: nodedrain.Decide(nodedrain.Snapshot{})}, nil
	}
	pods, err := c.Pods(ctx, from, name)
	if err != nil {
		return nil, err
	}
	now, skewed := c.Now()
	return &drainOf{connection: c, node: node, decision: nodedrain.Decide(nodedrain.Snapshot{
		Now: now, ClockSkewed: skewed, Node: node, Pods: kube.Pointers(pods),
		Rules: seen.rules, Facts: c.Facts(ctx, pods), Answers: c.Evictions.Refusals(userOf(seen.request)),
	})}, nil
}

// drainElsewhere cordons the node and has its pods evicted, and no others; without the
// cordon nobody is: what comes in its place could land there again.
func (r *reconciler) drainElsewhere(ctx context.Context, q request, seen *observed, wanted bool) error {
	if !wanted {
		r.leave(q)
		return nil
	}
	drain := seen.drain
	if drain == nil {
		return nil
	}
	if drain.node != nil && !drain.node.Spec.Unschedulable {
		if err := kube.MakeUnschedulable(ctx, drain.connection.Client, drain.node); err != nil {
			drain.connection.Evictions.Want(userOf(q), nil, nil)
			return fmt.Errorf("cordon node %s: %w", drain.node.Name, err)
		}
	}
	drain.connection.Evictions.Want(userOf(q), drain.decision.Evict, drain.decision.GracePeriodSeconds)
	return nil
}

// leave ends what was begun in another cluster.
func (r *reconciler) leave(q request) {
	before, connection, known := r.watchIndex.Unwatch(q)
	if !known {
		return
	}
	if connection != nil {
		connection.Evictions.Want(userOf(q), nil, nil)
	}
	r.clusters.Release(before.Cluster, userOf(q))
}

// followElsewhere has Machines woken by what happens in their clusters.
func (r *reconciler) followElsewhere(registry *workload.Registry) {
	registry.Watch(&corev1.Pod{}, func(cluster types.NamespacedName, old, now client.Object) {
		pod, ok := cmp.Or(now, old).(*corev1.Pod)
		if ok && strings.HasPrefix(cluster.Name, foreign) && pod.Spec.NodeName != "" {
			r.wake(r.watchIndex.Users(workload.Place{Cluster: cluster, Node: pod.Spec.NodeName})...)
		}
	})
	registry.Watch(&corev1.Node{}, func(cluster types.NamespacedName, old, now client.Object) {
		if strings.HasPrefix(cluster.Name, foreign) && nodeMatters(old, now) {
			r.wake(r.watchIndex.Users(workload.Place{Cluster: cluster, Node: cmp.Or(now, old).GetName()})...)
		}
	})
	// What rules go by. What is new has no pods yet.
	registry.Watch(&corev1.Namespace{}, func(cluster types.NamespacedName, old, now client.Object) {
		if old != nil && now != nil && !maps.Equal(old.GetLabels(), now.GetLabels()) {
			r.wake(r.inCluster(cluster)...)
		}
	})
	registry.Watch(&appsv1.DaemonSet{}, func(cluster types.NamespacedName, _, now client.Object) {
		if now == nil {
			r.wake(r.inCluster(cluster)...)
		}
	})
	registry.OnChange(func(cluster types.NamespacedName) { r.wake(r.inCluster(cluster)...) })
	registry.OnEvictions(func(owner types.NamespacedName) {
		if name, ours := strings.CutPrefix(owner.Name, foreign); ours {
			r.wake(requestOf(core.ClusterAPI, owner.Namespace, name)...)
		}
	})
}

// nodeMatters is false of a heartbeat.
func nodeMatters(old, now client.Object) bool {
	if old == nil || now == nil {
		return true
	}
	before, after := old.(*corev1.Node), now.(*corev1.Node)
	return podclass.Unreachable(before) != podclass.Unreachable(after) || before.Spec.Unschedulable != after.Spec.Unschedulable
}
