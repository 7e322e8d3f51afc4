package nodemaintenance

import (
	"cmp"
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

// silences remember since when agents do not answer, by our own clock, and whether that
// was told. A manager that has just started gives them their time again.
type silences struct {
	mu    sync.Mutex
	nodes map[string]silence
}

type silence struct {
	since time.Time
	told  bool
}

func newSilences() *silences { return &silences{nodes: map[string]silence{}} }

// hear notes whether the agent of a node answers.
func (s *silences) hear(node string, answers bool, now time.Time) silence {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, silent := s.nodes[node]
	switch {
	case answers:
		delete(s.nodes, node)
		return silence{}
	case !silent:
		known = silence{since: now}
		s.nodes[node] = known
	}
	return known
}

// tell notes that it was told.
func (s *silences) tell(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, silent := s.nodes[node]; silent {
		known.told = true
		s.nodes[node] = known
	}
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodeagents,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// observeAgents reads what the agents of the nodes of a group say, and whether they are
// there.
func (r *reconciler) observeAgents(ctx context.Context, g *group.Group, snapshot *maintenance.Snapshot) error {
	said, err := named[v1alpha1.NodeAgent](ctx, r, g.Nodes)
	if err != nil {
		return err
	}
	with := sets.New[string]()
	agents := make([]maintenance.Agent, len(said))
	kube.Parallel(r.workers, len(said), func(i int) {
		agents[i] = maintenance.AgentOf(said[i])
		var answers bool
		answers, agents[i].AnswersUntil = r.answers(ctx, said[i], snapshot.Now)
		heard := r.silences.hear(said[i].Name, answers, snapshot.Now)
		agents[i].SilentSince, agents[i].Reported = heard.since, heard.told
	})
	snapshot.Runners.Agents = make(map[string]maintenance.Agent, len(said))
	for i, object := range said {
		snapshot.Runners.Agents[object.Name] = agents[i]
		with.Insert(object.Name)
	}
	for _, node := range g.Nodes {
		if !with.Has(node) {
			r.silences.hear(node, true, snapshot.Now)
		}
	}
	return nil
}

// answers returns true if something shows that an agent runs, and until when it does:
// zero is until an event. It is its pod, which is on its node, or a Lease. What cannot be
// read shows nothing: that is told after a while, and changes nothing else.
func (r *reconciler) answers(ctx context.Context, agent *v1alpha1.NodeAgent, now time.Time) (bool, time.Time) {
	key := maintenance.AgentPod(agent, r.namespace)
	if key.Name == "" {
		return r.renews(ctx, agent.Name, now)
	}
	var pod corev1.Pod
	err := r.client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	return err == nil && pod.Spec.NodeName == agent.Name && podclass.Ready(&pod), time.Time{}
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get,namespace=release

// renews looks at the Lease of an agent that runs as a unit of its host. It is not
// watched: the Leases of all agents change all the time, and that of a node matters
// only as long as its pods do.
func (r *reconciler) renews(ctx context.Context, node string, now time.Time) (bool, time.Time) {
	var lease coordinationv1.Lease
	if r.live.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: maintenance.AgentLease(node)}, &lease) != nil {
		return false, time.Time{}
	}
	return maintenance.AgentRuns(&lease, node, now)
}

// agentMatters drops what no decision reads of a NodeAgent, and agents of nodes that no
// maintenance has to do with and that keep nothing away.
func (r *reconciler) agentMatters(old, now *v1alpha1.NodeAgent) (time.Duration, []group.Member) {
	name := cmp.Or(now, old).Name
	holds := now != nil && maintenance.AgentOf(now).Holds()
	switch {
	case !holds && !r.schedule.selected(name) && !r.watched.has(name):
		return 0, nil
	case old != nil && now != nil && maintenance.AgentPod(old, r.namespace) == maintenance.AgentPod(now, r.namespace) &&
		old.Status.ManifestDir == now.Status.ManifestDir && equality.Semantic.DeepEqual(old.Status.StaticPods, now.Status.StaticPods):
		return 0, nil
	}
	return coalesce, []group.Member{group.Node(name)}
}
