// Package view derives what the plugin prints about a cluster from its objects. It is pure. Foreign
// text is shown in one line each, without terminal control characters.
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

const maxWords = 300

// Agent is the printed state of a NodeAgent (KEP-4212, "kubelet: Static Pods").
type Agent struct {
	Node    string
	Answers string
	// Running, Held and Left count static pods that can be stopped, are stopped or stay.
	Running, Held, Left int
	Shutdown, Mode      string
	Since               time.Time
	Notes               []string
	Pods                []StaticPod
}

// StaticPod is a printed static pod.
type StaticPod struct {
	Name, State, Maintenance, Message string
	// Since is zero if unknown.
	Since time.Time
}

// AgentSigns are the signs of life of agents.
type AgentSigns struct {
	Namespace, PodNamespace string
	Pods                    map[string]*corev1.Pod
	// Leases holds those of agents outside of pods, by name. Now is compared with them.
	Leases                   map[string]*coordinationv1.Lease
	Now                      time.Time
	PodsUnread, LeasesUnread error
}

// AgentOf returns the printed state of an agent.
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

// order ranks states; unknown ones come first.
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

// answers sets whether the agent responds, with a note if it does not.
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
		a.Notes = append(a.Notes, fmt.Sprintf("%s: the agent is not responding: %s", a.Node, missing))
		return
	}
	a.Notes = append(a.Notes, fmt.Sprintf("%s: the agent is not responding and keeps %s away: %s. If it does not recover, run on the node: %s",
		a.Node, phrase.Count(a.Held, "static pod"), missing, blocker.BringBack(agent.Status.ManifestDir)))
}

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
		return fmt.Sprintf("pod %s does not exist", name), false
	case !podclass.Ready(pod):
		return fmt.Sprintf("pod %s is not ready", name), false
	}
	return "", false
}

// unrenewed returns what an agent outside of a pod lacks.
func (s AgentSigns) unrenewed(node string) string {
	name := maintenance.AgentLease(node)
	lease := s.Leases[name]
	if lease == nil {
		lease = &coordinationv1.Lease{}
	}
	if runs, _ := maintenance.AgentRuns(lease, node, s.Now); runs {
		return ""
	}
	return fmt.Sprintf("it does not renew its Lease %s/%s; check on the node: systemctl status ebbtide-agent", s.Namespace, name)
}
