package demo

import (
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// outage is the story of a real node that is drained with its static pods, loses its power
// and comes back. Each line is said once.
type outage struct {
	say  say
	node string

	daemons  map[types.UID]*leaver
	boot     string
	booted   bool
	cordoned bool
	drained  bool
	back     bool
	returned bool // the pod of the DaemonSet
	static   v1alpha1.StaticPod
	heldAt   time.Duration
	runsAt   time.Duration
	summary  string
}

func newOutage(node string, say say) *outage {
	return &outage{say: say, node: node, daemons: map[types.UID]*leaver{}}
}

func (s *outage) isDrained() bool { return s.drained && s.static.State == v1alpha1.StaticPodHeld }
func (s *outage) hasBooted() bool { return s.booted }

// isBack reports whether all pods of the node have returned.
func (s *outage) isBack() bool {
	return s.back && s.returned && s.static.State == v1alpha1.StaticPodRunning
}

// see adds one change to the story.
func (s *outage) see(at time.Duration, change watch.Event) error {
	switch object := change.Object.(type) {
	case *corev1.Node:
		s.seeNode(at, object)
	case *corev1.Pod:
		s.seePod(at, object, change.Type == watch.Deleted)
	case *v1alpha1.NodeAgent:
		s.seeAgent(at, object)
	case *v1alpha1.NodeMaintenance:
		s.seeMaintenance(at, object)
	default:
		return fmt.Errorf("a watch ended early: %v", change)
	}
	return nil
}

func (s *outage) seeNode(at time.Duration, node *corev1.Node) {
	if s.boot == "" {
		s.boot = node.Status.NodeInfo.BootID
	}
	switch {
	case node.Spec.Unschedulable && !s.cordoned:
		s.cordoned = true
		s.say(at, "cordoned", s.node)
	case s.drained && !s.booted && node.Status.NodeInfo.BootID != s.boot && podclass.NodeReady(node):
		s.booted = true
		s.say(at, "boots", fmt.Sprintf("%s has rebooted, and %s is %s", s.node, s.static.Name, s.static.State))
	case !node.Spec.Unschedulable && s.booted && !s.back:
		s.back = true
		s.say(at, "back", s.node+" is schedulable again")
	}
}

// seePod prints changes of DaemonSet pods; those of static pods come from their agent.
func (s *outage) seePod(at time.Duration, pod *corev1.Pod, gone bool) {
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "DaemonSet" {
		return
	}
	p, known := s.daemons[pod.UID]
	if !known {
		p = &leaver{name: pod.Name}
		s.daemons[pod.UID] = p
	}
	// Its containers have ended; the kubelet deletes the object some moments later.
	ended := gone || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case p.evicted && ended && !p.gone:
		p.gone = true
		s.say(at, "ended", fmt.Sprintf("%s, %.1fs after its deletion", pod.Name, (at-p.evictedAt).Seconds()))
	case pod.DeletionTimestamp != nil && !p.evicted:
		p.evicted, p.evictedAt = true, at
		s.say(at, "deleted", pod.Name)
	case s.drained && len(s.daemons) > 1 && podclass.Ready(pod) && !s.returned:
		s.returned = true
		s.say(at, "returns", pod.Name)
	}
}

// verbs maps the states of a static pod to words.
var verbs = map[v1alpha1.StaticPodState]string{
	v1alpha1.StaticPodHolding: "renamed", v1alpha1.StaticPodHeld: "held", v1alpha1.StaticPodRestoring: "restored", v1alpha1.StaticPodRunning: "runs",
}

func (s *outage) seeAgent(at time.Duration, agent *v1alpha1.NodeAgent) {
	for _, pod := range agent.Status.StaticPods {
		before := s.static.State
		s.static = pod
		if pod.State == before || before == "" {
			continue
		}
		text := pod.Name
		switch pod.State {
		case v1alpha1.StaticPodHolding:
			text += fmt.Sprintf(": %[1]s is renamed to .%[1]s.ebbtide-held, so the kubelet ends the pod", pod.Manifest)
		case v1alpha1.StaticPodHeld:
			s.heldAt = at
			text += ": " + pod.Message
		case v1alpha1.StaticPodRunning:
			s.runsAt = at
		default:
			text += ": " + pod.Message
		}
		s.say(at, verbs[pod.State], text)
	}
}

func (s *outage) seeMaintenance(at time.Duration, m *v1alpha1.NodeMaintenance) {
	s.summary = m.Status.Summary
	if meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) && !s.drained {
		s.drained = true
		s.say(at, "drained", s.node)
	}
}

// lastStatus describes the progress for an error.
func (s *outage) lastStatus() string {
	return fmt.Sprintf("%s; %s is %s: %s", s.summary, s.static.Name, s.static.State, s.static.Message)
}

func (s *outage) printSummary(out io.Writer) {
	fmt.Fprintf(out, "\n%s was down for %.1fs, during a reboot of its node.\n", s.static.Name, (s.runsAt - s.heldAt).Seconds())
}
