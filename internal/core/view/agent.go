// Package view is what people are shown of a cluster, read from its objects and from
// nothing else. The plugin prints it. It is pure.
//
// What others have written is shown in one line each, without what a terminal would
// take for a command.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// maxWords is how many bytes of one text of others are shown.
const maxWords = 300

// Agent is an agent as it is shown (KEP-4212, "kubelet: Static Pods").
type Agent struct {
	Node string
	// Answers is yes, no, or unknown.
	Answers string
	// Running, Held and Left are how many static pods run and can be taken down, are away
	// or on their way, and stay whatever happens.
	Running, Held, Left int
	// Shutdown is how far a shutdown has come, and Mode what is done about one.
	Shutdown, Mode string
	// Since is when the NodeAgent was created.
	Since time.Time
	// Notes are what somebody should know or do.
	Notes []string
	// Pods are the static pods, those that are away first.
	Pods []StaticPod
}

// StaticPod is one as it is shown.
type StaticPod struct {
	Name, State, Maintenance, Message string
	// Since is since when it is in this state; zero if that is unknown.
	Since time.Time
}

// AgentSigns are the signs of life of agents.
type AgentSigns struct {
	// Namespace is Ebbtide's, where the Leases are; PodNamespace is that of the pods.
	Namespace, PodNamespace string
	// Pods are those of agents that have one, by name.
	Pods map[string]*corev1.Pod
	// Leases are those of agents that are units of their hosts, by name, and Now is what
	// they are compared with.
	Leases map[string]*coordinationv1.Lease
	Now    time.Time
	// PodsUnread and LeasesUnread are why they could not be read.
	PodsUnread, LeasesUnread error
}

// AgentOf is what is shown of an agent.
func AgentOf(agent *v1alpha1.NodeAgent, signs AgentSigns) Agent {
	shown := Agent{Node: agent.Name, Since: agent.CreationTimestamp.Time, Shutdown: "-", Mode: "-"}
	if s := agent.Status.Shutdown; s != nil {
		shown.Shutdown, shown.Mode = excerpt.Line(string(s.Phase), maxWords), excerpt.Line(string(s.Mode), maxWords)
	}
	for i := range agent.Status.StaticPods {
		shown.count(&agent.Status.StaticPods[i])
	}
	slices.SortStableFunc(shown.Pods, func(a, b StaticPod) int { return cmp.Compare(order[a.State], order[b.State]) })
	shown.answers(agent, signs)
	return shown
}

// order is that in which states are shown; what is not among them comes first.
var order = map[string]int{
	string(v1alpha1.StaticPodHolding): 1, string(v1alpha1.StaticPodHeld): 2, string(v1alpha1.StaticPodRestoring): 3,
	string(v1alpha1.StaticPodRunning): 4, string(v1alpha1.StaticPodUnmanageable): 5,
}

func (a *Agent) count(pod *v1alpha1.StaticPod) {
	switch pod.State {
	case v1alpha1.StaticPodRunning, v1alpha1.StaticPodRestoring:
		a.Running++
	case v1alpha1.StaticPodHolding, v1alpha1.StaticPodHeld:
		a.Held++
	default:
		a.Left++
	}
	line := StaticPod{
		Name:    excerpt.Line(pod.Namespace+"/"+pod.Name, maxWords),
		State:   excerpt.Line(string(pod.State), maxWords),
		Message: excerpt.Line(pod.Message, maxWords), Maintenance: excerpt.Line(pod.MaintenanceName, maxWords),
	}
	if pod.SinceTime != nil {
		line.Since = pod.SinceTime.Time
	}
	a.Pods = append(a.Pods, line)
}

// answers finds out whether the agent is there, and says what to do if it is not.
func (a *Agent) answers(agent *v1alpha1.NodeAgent, signs AgentSigns) {
	missing, unread := signs.missing(agent)
	switch {
	case unread:
		a.Answers = "unknown"
		return
	case missing == "":
		a.Answers = "yes"
		return
	}
	a.Answers = "no"
	if a.Held == 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%s: its agent does not answer: %s", a.Node, missing))
		return
	}
	a.Notes = append(a.Notes, fmt.Sprintf("%s: its agent does not answer and keeps %s away: %s. If it does not come back, run this on the node: %s",
		a.Node, phrase.Count(a.Held, "static pod"), missing, blocker.BringBack(agent.Status.ManifestDir)))
}

// missing is what is missing of an agent that answers; unread is true if nobody knows.
func (s AgentSigns) missing(agent *v1alpha1.NodeAgent) (missing string, unread bool) {
	if agent.Status.PodName == "" {
		return s.unrenewed(agent.Name), s.LeasesUnread != nil
	}
	key := maintenance.AgentPod(agent, s.Namespace)
	name, pod := excerpt.Line(key.String(), maxWords), s.Pods[key.Name]
	switch {
	case s.PodsUnread != nil:
		return "", true
	case pod == nil || pod.Namespace != key.Namespace || pod.Spec.NodeName != agent.Name:
		return fmt.Sprintf("there is no pod %s on it", name), false
	case !podclass.Ready(pod):
		return fmt.Sprintf("pod %s is not ready", name), false
	}
	return "", false
}

// unrenewed is what is missing of an agent that is a unit of its host.
func (s AgentSigns) unrenewed(node string) string {
	name := maintenance.AgentLease(node)
	lease := s.Leases[name]
	if lease == nil {
		lease = &coordinationv1.Lease{}
	}
	if runs, _ := maintenance.AgentRuns(lease, node, s.Now); runs {
		return ""
	}
	return fmt.Sprintf("it is a unit of the host and does not renew its Lease %s/%s; ask there: systemctl status ebbtide-agent", s.Namespace, name)
}
