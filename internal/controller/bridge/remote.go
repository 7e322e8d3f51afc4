package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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

// watchedNode is the node that a Machine watches in another cluster.
type watchedNode struct {
	cluster    types.NamespacedName
	node       string
	connection *workload.Connection
}

// watchIndex maps Machines to the remote nodes that they watch, and back: a change of a pod
// wakes only the Machines of its node.
type watchIndex struct {
	mu  sync.Mutex
	all map[request]watchedNode
	// at are the Machines by cluster and node.
	at map[types.NamespacedName]map[string]map[request]bool
}

func newWatchIndex() watchIndex {
	return watchIndex{all: map[request]watchedNode{}, at: map[types.NamespacedName]map[string]map[request]bool{}}
}

// watch records what a Machine watches, and reports whether it watched that cluster before.
func (s *watchIndex) watch(q request, at watchedNode) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.all[q]
	if known {
		s.forget(q, before)
	}
	s.all[q] = at
	nodes := s.at[at.cluster]
	if nodes == nil {
		nodes = map[string]map[request]bool{}
		s.at[at.cluster] = nodes
	}
	if nodes[at.node] == nil {
		nodes[at.node] = map[request]bool{}
	}
	nodes[at.node][q] = true
	return known && before.cluster == at.cluster
}

// share is the cluster that a Machine looks at, or else its namespace. A cluster that hangs
// holds up no other; unlike a namespace, it has a slash in its name.
func (s *watchIndex) share(q request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.all[q]; known {
		return at.cluster.String()
	}
	return q.Namespace
}

func (s *watchIndex) unwatch(q request) (before watchedNode, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, known = s.all[q]; known {
		s.forget(q, before)
		delete(s.all, q)
	}
	return before, known
}

func (s *watchIndex) forget(q request, before watchedNode) {
	nodes := s.at[before.cluster]
	delete(nodes[before.node], q)
	if len(nodes[before.node]) == 0 {
		delete(nodes, before.node)
	}
	if len(nodes) == 0 {
		delete(s.at, before.cluster)
	}
}

// of are those that look at a node of a cluster, or at any of it.
func (s *watchIndex) of(cluster types.NamespacedName, node string) (found []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node != "" {
		return slices.Collect(maps.Keys(s.at[cluster][node]))
	}
	for _, machines := range s.at[cluster] {
		found = slices.AppendSeq(found, maps.Keys(machines))
	}
	return found
}

// drainOf is how the drain in another cluster goes, and with what it goes on.
type drainOf struct {
	connection *workload.Connection
	node       *corev1.Node
	decision   nodedrain.Decision
}

func userOf(q request) types.NamespacedName {
	return types.NamespacedName{Namespace: q.Namespace, Name: foreign + q.Name}
}

// clusterOf is how the cluster of a Machine is reached: by the Secret of Cluster API's contract.
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
	at := watchedNode{cluster: client.ObjectKeyFromObject(cluster), node: seen.Machine.Node}
	// Before anything is asked: what changes from now on wakes the Machine.
	if again := r.watchIndex.watch(q, at); !again {
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
	at.connection = connection
	r.watchIndex.watch(q, at)
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
		Rules: seen.rules, Facts: c.Facts(ctx, pods), Answers: c.Evictions.Answers(userOf(seen.request)),
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
	before, known := r.watchIndex.unwatch(q)
	if !known {
		return
	}
	if before.connection != nil {
		before.connection.Evictions.Want(userOf(q), nil, nil)
	}
	r.clusters.Release(before.cluster, userOf(q))
}

// followElsewhere has Machines woken by what happens in their clusters.
func (r *reconciler) followElsewhere(registry *workload.Registry) {
	registry.Watch(&corev1.Pod{}, func(cluster types.NamespacedName, old, now client.Object) {
		pod, ok := cmpOr(now, old).(*corev1.Pod)
		if ok && strings.HasPrefix(cluster.Name, foreign) && pod.Spec.NodeName != "" {
			r.wake(r.watchIndex.of(cluster, pod.Spec.NodeName)...)
		}
	})
	registry.Watch(&corev1.Node{}, func(cluster types.NamespacedName, old, now client.Object) {
		if strings.HasPrefix(cluster.Name, foreign) && nodeMatters(old, now) {
			r.wake(r.watchIndex.of(cluster, cmpOr(now, old).GetName())...)
		}
	})
	// What rules go by. What is new has no pods yet.
	registry.Watch(&corev1.Namespace{}, func(cluster types.NamespacedName, old, now client.Object) {
		if old != nil && now != nil && !maps.Equal(old.GetLabels(), now.GetLabels()) {
			r.wake(r.watchIndex.of(cluster, "")...)
		}
	})
	registry.Watch(&appsv1.DaemonSet{}, func(cluster types.NamespacedName, _, now client.Object) {
		if now == nil {
			r.wake(r.watchIndex.of(cluster, "")...)
		}
	})
	registry.OnChange(func(cluster types.NamespacedName) { r.wake(r.watchIndex.of(cluster, "")...) })
	registry.OnNews(func(owner types.NamespacedName) {
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

func cmpOr(now, old client.Object) client.Object {
	if now == nil {
		return old
	}
	return now
}
