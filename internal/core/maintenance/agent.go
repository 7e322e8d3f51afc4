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
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// AgentPatience is for how long an agent may be silent before that is told.
	AgentPatience = time.Minute
	// AgentLeaseLasts is for how long a renewed Lease tells that an agent runs.
	AgentLeaseLasts = 40 * time.Second
)

// AgentLease is the name of the Lease of an agent that has no pod, in Ebbtide's namespace.
func AgentLease(node string) string { return "ebbtide-agent-" + node }

// AgentRuns returns true if its Lease tells that the agent of a node runs, and until when
// it does. That one counts whose NodeAgent names no pod: it gains nothing by that, as only
// the agent of a node may write its Lease. A time ahead of us would have the agent be there
// for as long as its clock is wrong.
func AgentRuns(lease *coordinationv1.Lease, node string, now time.Time) (runs bool, until time.Time) {
	holder := lease.Spec.HolderIdentity
	if lease.Spec.RenewTime == nil || holder == nil || *holder != node || lease.Spec.RenewTime.After(now.Add(AgentLeaseLasts)) {
		return false, time.Time{}
	}
	until = lease.Spec.RenewTime.Add(AgentLeaseLasts)
	return until.After(now), until
}

// AgentPod is the pod of an agent, or nothing if it has none; own is Ebbtide's namespace.
func AgentPod(object *v1alpha1.NodeAgent, own string) types.NamespacedName {
	if object.Status.PodName == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(object.Status.PodNamespace, own), Name: object.Status.PodName}
}

// Agent is what is known of the agent of a node.
type Agent struct {
	// StaticPods are the pods that its NodeAgent tells of.
	StaticPods []v1alpha1.StaticPod
	// ManifestDir is the folder that it says it works on.
	ManifestDir string
	// SilentSince is since when nothing shows that it runs; zero if something does.
	SilentSince time.Time
	// AnswersUntil is until when it is known to run; zero is until that is told.
	AnswersUntil time.Time
	// Told is true if it was told before that this agent is silent.
	Told bool
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

// down returns since when an agent has been silent for too long, or when it will have been.
func (a Agent) down(now time.Time) (down bool, at time.Time) {
	if a.SilentSince.IsZero() {
		return false, time.Time{}
	}
	at = a.SilentSince.Add(AgentPatience)
	return !now.Before(at), at
}

// says is what the agent of a node says of a static pod; false if it says nothing.
func (n *node) says(object *corev1.Pod) (v1alpha1.StaticPod, bool) {
	if n.agent == nil {
		return v1alpha1.StaticPod{}, false
	}
	at := slices.IndexFunc(n.agent.StaticPods, func(said v1alpha1.StaticPod) bool {
		return said.Name == object.Name && said.Namespace == object.Namespace
	})
	if at < 0 {
		return v1alpha1.StaticPod{}, false
	}
	return n.agent.StaticPods[at], true
}

// takenDown returns true if the agent of a node can take a static pod down, for all
// that is known: a pod that it does not tell of is waited for, as it may tell of it in a moment.
func (n *node) takenDown(object *corev1.Pod) bool {
	said, _ := n.says(object)
	return n.agent != nil && said.State != v1alpha1.StaticPodUnmanageable
}

// readUnmirrored adds the static pods of a node that only its agent knows of. Somebody
// has deleted their mirror pods, or their kubelet has; they are gone when the agent
// has seen it.
func (r *reader) readUnmirrored(n *node) {
	if n.agent == nil {
		return
	}
	mirrored := make(map[types.NamespacedName]bool, len(n.agent.StaticPods))
	for _, one := range r.Pods[n.name()] {
		mirrored[types.NamespacedName{Namespace: one.Object.Namespace, Name: one.Object.Name}] = true
	}
	for _, said := range n.agent.StaticPods {
		if mirrored[types.NamespacedName{Namespace: said.Namespace, Name: said.Name}] || said.State == v1alpha1.StaticPodHeld || said.State == v1alpha1.StaticPodUnmanageable {
			continue
		}
		object := unmirrored(n, said)
		n.pods = append(n.pods, pod{Subject: drainplan.SubjectOf(object), object: object, treatment: &ordinary, unmirrored: true})
	}
}

// unmirrored stands in for the mirror pod of a static pod.
func unmirrored(n *node, said v1alpha1.StaticPod) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: said.Namespace, Name: said.Name},
		Spec:       corev1.PodSpec{NodeName: n.name(), Priority: &said.Priority},
	}
	podclass.MakeMirror(pod, "")
	return pod
}

// blockAgent finds out whether a static pod waits for its agent.
func (t *targeted) blockAgent(o *outcome, p *pod) (v1alpha1.Blocker, bool) {
	if o.agent == nil || p.Type() != v1alpha1.PodTypeStatic || hasThirdParty(p.object) {
		return v1alpha1.Blocker{}, false
	}
	if down, _ := o.agent.down(t.Now); down {
		return t.silence(o.node, *o.agent).Down(), true
	}
	if p.unmirrored {
		said, _ := o.says(p.object)
		return blocker.AgentWorks(o.object, said), true
	}
	return v1alpha1.Blocker{}, false
}

func (t *targeted) silence(n *node, agent Agent) blocker.Agent {
	return blocker.Agent{
		Node: n.object, Namespace: t.Namespace, Since: agent.SilentSince, Dir: agent.ManifestDir, Held: agent.held(),
	}
}

// missAgent tells once of an agent that is silent while static pods are to go or to
// come back, and says when to look again at one that is not silent for long.
func (t *targeted) missAgent(o *outcome) {
	if o.agent == nil || o.gone {
		return
	}
	agent := *o.agent
	missed := false
	for i := range o.pods {
		p := &o.pods[i]
		missed = missed || p.Type() == v1alpha1.PodTypeStatic && p.counted && o.covered[i]
	}
	if !missed && !agent.Holds() {
		return
	}
	if !missed {
		agent = agent.sinceReady(o.object)
	}
	o.wake(t.Now, agent.AnswersUntil)
	down, at := agent.down(t.Now)
	switch {
	case !down:
		o.wake(t.Now, at)
	case !agent.Told:
		o.missed = []event.Event{event.NodeAgentDown(o.object, t.silence(o.node, agent).Message())}
	}
	if down && !missed {
		idle := t.silence(o.node, agent).Down()
		idle.PodCount = 0
		o.refusals = append(o.refusals, idle)
	}
}

// sinceReady has the silence of an agent begin when its node is ready: the pods of a
// drained node that is away are kept away on purpose, and nobody can answer there.
func (a Agent) sinceReady(object *corev1.Node) Agent {
	ready := announcement.Find(object, corev1.NodeReady)
	switch {
	case ready == nil || ready.Status != corev1.ConditionTrue:
		a.SilentSince = time.Time{}
	case ready.LastTransitionTime.After(a.SilentSince):
		a.SilentSince = ready.LastTransitionTime.Time
	}
	return a
}
