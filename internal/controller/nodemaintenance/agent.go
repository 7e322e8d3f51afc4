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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

// silences remembers since when agents do not answer, by our own clock, and whether that was
// reported. A manager that has just started gives them their time again.
type silences struct {
	mu    sync.Mutex
	nodes map[string]silence
}

type silence struct {
	since    time.Time
	reported bool
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

// report notes that the silence was reported.
func (s *silences) report(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, silent := s.nodes[node]; silent {
		known.reported = true
		s.nodes[node] = known
	}
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodeagents,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// observeAgents reads the reports of the agents of a group's nodes, and whether they answer.
func (r *reconciler) observeAgents(ctx context.Context, g *group.Group, snapshot *maintenance.Snapshot) error {
	reports, err := named[v1alpha1.NodeAgent](ctx, r, g.Nodes)
	if err != nil {
		return err
	}
	agents := make([]maintenance.Agent, len(reports))
	kube.Parallel(r.workers, len(reports), func(i int) {
		agents[i] = maintenance.AgentOf(reports[i])
		var answers bool
		answers, agents[i].AnswersUntil = r.answers(ctx, reports[i], snapshot.Now)
		heard := r.silences.hear(reports[i].Name, answers, snapshot.Now)
		agents[i].SilentSince, agents[i].Reported = heard.since, heard.reported
	})
	snapshot.Runners.Agents = make(map[string]maintenance.Agent, len(reports))
	for i, object := range reports {
		snapshot.Runners.Agents[object.Name] = agents[i]
	}
	for _, node := range g.Nodes {
		if _, found := snapshot.Runners.Agents[node]; !found {
			r.silences.hear(node, true, snapshot.Now)
		}
	}
	return nil
}

// answers returns whether an agent runs, by its pod, which is on its node, or its Lease, and until
// when: zero is until an event. If that cannot be read, the agent counts as silent.
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

// renews reads the Lease of an agent that runs as a unit of its host. Leases are not watched,
// because those of all agents change all the time.
func (r *reconciler) renews(ctx context.Context, node string, now time.Time) (bool, time.Time) {
	var lease coordinationv1.Lease
	if r.live.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: maintenance.AgentLease(node)}, &lease) != nil {
		return false, time.Time{}
	}
	return maintenance.AgentRuns(&lease, node, now)
}

// agentMatters drops changes of a NodeAgent that no decision reads, and agents of nodes without
// maintenance that keep no pod away.
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
