package nodeshutdown

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Observation is the state of the shutdown and boot of a node, and since when. The Ready condition
// is not enough: during a fast boot it may stay True, and its time is by the clock of the node.
type Observation struct {
	Since time.Time

	boot, reported string
	phase          v1alpha1.NodeShutdownPhase
	ready          corev1.ConditionStatus
	transition     time.Time
}

// Observe returns the current observation. Clock problems reset its time to now.
func (s Snapshot) Observe(before Observation) Observation {
	observation := Observation{Since: before.Since}
	if s.Node != nil {
		observation.boot = s.Node.Status.NodeInfo.BootID
		if ready := podclass.NodeCondition(s.Node, corev1.NodeReady); ready != nil {
			observation.ready, observation.transition = ready.Status, ready.LastTransitionTime.UTC()
		}
	}
	if s.Agent != nil {
		observation.reported = s.Agent.Status.BootID
		if told := s.Agent.Status.Shutdown; told != nil {
			observation.phase = told.Phase
		}
	}
	if observation != before || s.ClockSkewed || observation.Since.After(s.Now) {
		observation.Since = s.Now
	}
	return observation
}
