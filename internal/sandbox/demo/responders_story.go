package demo

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// response is the story of a pod that responds to its eviction. Each line is printed once.
type response struct {
	say  say
	node string
	// said holds the printed lines, status the last summary of the maintenance.
	said   map[string]bool
	status string

	cordoned, responded, reported, gone, drained, back bool
}

func newResponse(node string, say say) *response {
	return &response{say: say, node: node, said: map[string]bool{}}
}

// isReported reports whether the maintenance shows a responder after its first report.
func (s *response) isReported() bool { return s.reported }

func (s *response) isDrained() bool { return s.drained && s.gone }
func (s *response) isBack() bool    { return s.back }

func (s *response) lastStatus() string { return s.status }

// once prints a line that was not printed before.
func (s *response) once(at time.Duration, verb, text string) {
	if !s.said[verb+text] {
		s.said[verb+text] = true
		s.say(at, verb, text)
	}
}

// see adds one change to the story.
func (s *response) see(at time.Duration, change watch.Event) error {
	switch object := change.Object.(type) {
	case *corev1.Node:
		s.seeNode(at, object)
	case *corev1.Pod:
		s.gone = s.gone || change.Type == watch.Deleted
		if change.Type == watch.Deleted {
			s.once(at, "gone", object.Name)
		}
	case *lifecyclev1alpha1.EvictionRequest:
		s.once(at, "requested", fmt.Sprintf("EvictionRequest for %s by %s", object.Spec.Target.Pod.Name, object.Spec.Requester))
	case *lifecyclev1alpha1.Eviction:
		s.seeEviction(at, object)
	case *v1alpha1.NodeMaintenance:
		s.seeMaintenance(at, object)
	default:
		return fmt.Errorf("a watch ended early: %v", change)
	}
	return nil
}

func (s *response) seeNode(at time.Duration, node *corev1.Node) {
	switch {
	case node.Spec.Unschedulable:
		s.cordoned = true
		s.once(at, "cordoned", s.node)
	case s.cordoned && s.drained && !s.back:
		s.back = true
		s.once(at, "back", s.node+" is schedulable again")
	}
}

func (s *response) seeEviction(at time.Duration, e *lifecyclev1alpha1.Eviction) {
	for _, one := range e.Status.TargetResponders {
		if one.State == lifecyclev1alpha1.ResponderStateActive {
			s.once(at, "active", "Eviction "+e.Name+": responder "+one.Name)
		}
	}
	for i := range e.Status.Responders {
		if one := &e.Status.Responders[i]; one.Message != nil {
			s.responded = true
			s.once(at, "reported", one.Name+": "+*one.Message)
		}
	}
}

func (s *response) seeMaintenance(at time.Duration, m *v1alpha1.NodeMaintenance) {
	s.status = m.Status.Summary
	for _, node := range m.Status.NodeStatuses {
		for _, b := range node.Blockers {
			if b.Object.Kind == "Responder" && s.responded {
				s.reported = true
				s.once(at, "status", string(b.Type)+": "+b.Message)
			}
		}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained); c != nil && c.Status == "True" && !s.drained {
		s.drained = true
		s.once(at, "drained", "Drained=True: "+c.Message)
	}
}
