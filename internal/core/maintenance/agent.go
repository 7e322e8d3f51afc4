package maintenance

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// AgentPatience is the time after which a silent agent is reported.
	AgentPatience = time.Minute
	// AgentLeaseLasts is the duration of the Lease of an agent.
	AgentLeaseLasts = 40 * time.Second
)

// AgentLease returns the name of the Lease of an agent that has no pod, in Ebbtide's namespace.
func AgentLease(node string) string { return "ebbtide-agent-" + node }

// AgentRuns reports whether the Lease of a node's agent is in force, and until when. A time
// ahead of ours does not count: it would keep the agent alive for as long as its clock is wrong.
func AgentRuns(lease *coordinationv1.Lease, node string, now time.Time) (runs bool, until time.Time) {
	holder := lease.Spec.HolderIdentity
	if lease.Spec.RenewTime == nil || holder == nil || *holder != node || lease.Spec.RenewTime.After(now.Add(AgentLeaseLasts)) {
		return false, time.Time{}
	}
	until = lease.Spec.RenewTime.Add(AgentLeaseLasts)
	return until.After(now), until
}

// AgentPod returns the key of an agent's pod, empty if it has none; own is Ebbtide's namespace.
func AgentPod(object *v1alpha1.NodeAgent, own string) types.NamespacedName {
	if object.Status.PodName == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(object.Status.PodNamespace, own), Name: object.Status.PodName}
}

// Agent is the state of the agent of a node.
type Agent struct {
	StaticPods  []v1alpha1.StaticPod
	ManifestDir string
	// SilentSince is zero while the agent is known to run.
	SilentSince time.Time
	// AnswersUntil is the time until which it is known to run; zero if a watch tells its end.
	AnswersUntil time.Time
	Reported     bool
}

// AgentOf reads a NodeAgent.
func AgentOf(object *v1alpha1.NodeAgent) Agent {
	return Agent{ManifestDir: object.Status.ManifestDir, StaticPods: object.Status.StaticPods}
}

// Holds returns true if pods are kept away from the node, or are on their way out.
func (a Agent) Holds() bool { return a.held() > 0 }

func (a Agent) held() int {
	held := 0
	for i := range a.StaticPods {
		state := a.StaticPods[i].State
		held += ones(state == v1alpha1.StaticPodHeld || state == v1alpha1.StaticPodHolding)
	}
	return held
}

// down returns whether the agent has been silent for too long, and when it has.
func (a Agent) down(now time.Time) (down bool, at time.Time) {
	if a.SilentSince.IsZero() {
		return false, time.Time{}
	}
	at = a.SilentSince.Add(AgentPatience)
	return !now.Before(at), at
}

func (n *node) agentReport(object *corev1.Pod) (report v1alpha1.StaticPod, found bool) {
	if n.agent == nil {
		return v1alpha1.StaticPod{}, false
	}
	at := slices.IndexFunc(n.agent.StaticPods, func(p v1alpha1.StaticPod) bool {
		return p.Name == object.Name && p.Namespace == object.Namespace
	})
	if at < 0 {
		return v1alpha1.StaticPod{}, false
	}
	return n.agent.StaticPods[at], true
}

// readUnmirrored adds static pods without mirror pod, until the agent reports them as held.
func (r *reader) readUnmirrored(n *node) {
	if n.agent == nil {
		return
	}
	mirrored := make(map[types.NamespacedName]bool, len(n.agent.StaticPods))
	for _, one := range r.Pods[n.name()] {
		mirrored[types.NamespacedName{Namespace: one.Object.Namespace, Name: one.Object.Name}] = true
	}
	for _, static := range n.agent.StaticPods {
		if mirrored[types.NamespacedName{Namespace: static.Namespace, Name: static.Name}] || static.State == v1alpha1.StaticPodHeld || static.State == v1alpha1.StaticPodUnmanageable {
			continue
		}
		object := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: static.Namespace, Name: static.Name},
			Spec:       corev1.PodSpec{NodeName: n.name(), Priority: &static.Priority},
		}
		podclass.MakeMirror(object, "")
		n.pods = append(n.pods, pod{Subject: drainplan.SubjectOf(object), object: object, treatment: &ordinary, unmirrored: true})
	}
}

func (t *targeted) blockAgent(o *outcome, p *pod) (v1alpha1.Blocker, bool) {
	if o.agent == nil || p.Type() != v1alpha1.PodTypeStatic || hasThirdParty(p.object) {
		return v1alpha1.Blocker{}, false
	}
	if down, _ := o.agent.down(t.Now); down {
		return t.silent(o.node, *o.agent).Down(), true
	}
	if p.unmirrored {
		report, _ := o.agentReport(p.object)
		return blocker.AgentWorks(o.object, report), true
	}
	return v1alpha1.Blocker{}, false
}

func (t *targeted) silent(n *node, agent Agent) blocker.Agent {
	return blocker.Agent{
		Node: n.object, Since: agent.SilentSince, Dir: agent.ManifestDir, Held: agent.held(),
	}
}

// checkAgent reports an agent once that is silent while static pods have to leave or to come
// back. The pods of a drained node that is away are kept away on purpose, so without pods that
// have to leave its silence begins when the node is ready.
func (t *targeted) checkAgent(o *outcome) {
	if o.agent == nil || o.gone {
		return
	}
	agent, missed := *o.agent, false
	for i := range o.pods {
		p := &o.pods[i]
		missed = missed || p.Type() == v1alpha1.PodTypeStatic && p.counted && o.covered[i]
	}
	if !missed && !agent.Holds() {
		return
	}
	if ready := podclass.NodeCondition(o.object, corev1.NodeReady); !missed {
		switch {
		case ready == nil || ready.Status != corev1.ConditionTrue:
			agent.SilentSince = time.Time{}
		case ready.LastTransitionTime.After(agent.SilentSince):
			agent.SilentSince = ready.LastTransitionTime.Time
		}
	}
	o.wake(t.Now, agent.AnswersUntil)
	down, at := agent.down(t.Now)
	o.wake(t.Now, at)
	if down && !agent.Reported {
		o.agentEvents = []event.Event{event.NodeAgentDown(o.object, t.silent(o.node, agent).Message())}
	}
	if down && !missed {
		idle := t.silent(o.node, agent).Down()
		idle.PodCount = 0
		o.refusals = append(o.refusals, idle)
	}
}
