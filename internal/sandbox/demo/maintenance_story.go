package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// slow bounds a termination that needs no line of its own.
const slow = 500 * time.Millisecond

// drain is the story of a NodeMaintenance of one node. Each line is said once.
type drain struct {
	say  say
	node string
	plan []v1alpha1.DrainPlanEntry

	pods      map[types.UID]*tenant
	wave      int // the last plan entry that has begun, from 1
	cordoned  bool
	drainedAt time.Duration
	drained   bool
	back      bool
	status    v1alpha1.NodeMaintenanceStatus
	budget    floor
}

// tenant is a pod of the node.
type tenant struct {
	name      string
	priority  int32
	daemon    bool
	asked     bool
	evicted   bool
	evictedAt time.Duration
	refused   bool
	surges    bool // it serves until it is replaced
	replaced  bool
	gone      bool
	returned  bool // it came after the drain
}

func newDrain(node string, plan []v1alpha1.DrainPlanEntry, say say) *drain {
	return &drain{say: say, node: node, plan: plan, pods: map[types.UID]*tenant{}}
}

func (s *drain) isDrained() bool { return s.drained }

// isBack reports whether the node is schedulable again after its drain, and every
// DaemonSet has its pod there again.
func (s *drain) isBack() bool {
	missing := 0
	for _, p := range s.pods {
		switch {
		case p.returned:
			missing--
		case p.daemon && p.evicted:
			missing++
		}
	}
	return s.back && missing <= 0
}

// see adds one change to the story.
func (s *drain) see(at time.Duration, change watch.Event) error {
	gone := change.Type == watch.Deleted
	switch object := change.Object.(type) {
	case *corev1.Node:
		s.seeNode(at, object)
	case *corev1.Pod:
		s.seePod(at, object, gone)
	case *policyv1.PodDisruptionBudget:
		s.budget.see(object)
	case *v1alpha1.Evacuation:
		s.seeEvacuation(at, object)
	case *v1alpha1.NodeMaintenance:
		s.seeMaintenance(at, object)
	default:
		return fmt.Errorf("a watch ended early: %v", change)
	}
	return nil
}

func (s *drain) seeNode(at time.Duration, node *corev1.Node) {
	switch unschedulable := node.Spec.Unschedulable; {
	case unschedulable && !s.cordoned:
		s.cordoned = true
		s.say(at, "cordoned", s.node)
	case !unschedulable && s.cordoned && s.drained && !s.back:
		s.back = true
		s.say(at, "back", s.node+" is schedulable again")
	}
}

func (s *drain) seePod(at time.Duration, pod *corev1.Pod, gone bool) {
	p, known := s.pods[pod.UID]
	if !known {
		owner := metav1.GetControllerOf(pod)
		p = &tenant{name: pod.Name, daemon: owner != nil && owner.Kind == "DaemonSet"}
		if pod.Spec.Priority != nil {
			p.priority = *pod.Spec.Priority
		}
		s.pods[pod.UID] = p
	}
	if _, detached := pod.Annotations[v1alpha1.SurgeAnnotation]; detached && !p.surges {
		p.surges = true
		s.say(at, "surges", pod.Name+" serves until it is replaced")
	}
	if pod.DeletionTimestamp != nil && !p.evicted {
		p.evicted, p.evictedAt = true, at
		s.say(at, p.verb(), pod.Name)
	}
	if s.drained && p.daemon && !known {
		s.say(at, "returns", pod.Name)
		p.returned = true
	}
	if gone && !p.gone {
		p.gone = true
		if took := at - p.evictedAt; took > slow {
			s.say(at, "gone", fmt.Sprintf("%s, %.1fs after its eviction", pod.Name, took.Seconds()))
		}
	}
}

// verb returns the word for the departure of the pod: pods of DaemonSets are not evicted.
func (p *tenant) verb() string {
	if p.daemon {
		return "deleted"
	}
	return "evicted"
}

func (s *drain) seeEvacuation(at time.Duration, evacuation *v1alpha1.Evacuation) {
	p, ok := s.pods[evacuation.Spec.PodRef.UID]
	if !ok {
		return
	}
	if !p.asked {
		p.asked = true
		s.seeWave(at, p)
	}
	if p.surges && evacuation.Status.ActiveEvacuatorCompleted && !p.replaced {
		p.replaced = true
		s.say(at, "replaced", evacuation.Status.Message)
	}
	refused := meta.FindStatusCondition(evacuation.Status.Conditions, v1alpha1.ConditionEvictionRefused)
	if refused != nil && refused.Status == metav1.ConditionTrue && !p.refused && !p.evicted {
		p.refused = true
		s.say(at, "waits", fmt.Sprintf("%s (%s): %s", p.name, refused.Reason, refused.Message))
	}
}

// seeWave announces an entry of the plan with its first Evacuation.
func (s *drain) seeWave(at time.Duration, first *tenant) {
	wave := s.waveOf(first)
	if wave <= s.wave {
		return
	}
	s.wave = wave
	pods := 0
	for _, p := range s.pods {
		if s.waveOf(p) == wave {
			pods++
		}
	}
	group := "of DaemonSets"
	if !first.daemon {
		group = fmt.Sprintf("with priority up to %d", s.plan[wave-1].PodPriority)
	}
	s.say(at, fmt.Sprintf("wave %d", wave), fmt.Sprintf("%d %s", pods, group))
}

// waveOf is the number of the first plan entry that reaches an ordinary pod, 0 if
// there is none. Pods of DaemonSets come after the plan.
func (s *drain) waveOf(p *tenant) int {
	if p.daemon {
		return len(s.plan) + 1
	}
	for i, entry := range s.plan {
		if p.priority <= entry.PodPriority {
			return i + 1
		}
	}
	return 0
}

func (s *drain) seeMaintenance(at time.Duration, maintenance *v1alpha1.NodeMaintenance) {
	s.status = maintenance.Status
	drained := meta.FindStatusCondition(s.status.Conditions, v1alpha1.ConditionDrained)
	if drained != nil && drained.Status == metav1.ConditionTrue && !s.drained {
		s.drained, s.drainedAt = true, at
		s.say(at, "drained", fmt.Sprintf("Drained=True: %s", drained.Message))
	}
}

// lastStatus describes the progress for an error.
func (s *drain) lastStatus() string {
	if s.status.Summary != "" {
		return s.status.Summary
	}
	return "the maintenance has no status"
}

func (s *drain) printSummary(out io.Writer) {
	evicted, replaced, deleted, waited, stay := 0, 0, 0, 0, []string{}
	for _, p := range s.pods {
		switch {
		case p.returned:
		case !p.evicted && !p.gone:
			stay = append(stay, p.name)
		case p.daemon:
			deleted++
		default:
			evicted++
		}
		if p.refused {
			waited++
		}
		if p.replaced {
			replaced++
		}
	}
	slices.Sort(stay)
	fmt.Fprintf(out, "\n%s was drained in %.1fs: %d pods evicted (%d waited for a budget, %d replaced before), %d of DaemonSets deleted; pods that stay: %s.\n",
		s.node, s.drainedAt.Seconds(), evicted, waited, replaced, deleted, cmp.Or(strings.Join(stay, ", "), "none"))
	s.budget.print(out)
}
