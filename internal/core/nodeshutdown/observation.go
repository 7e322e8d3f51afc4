package nodeshutdown

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Observation holds what a node shows of its shutdown and of its boot, and since when. The Ready condition alone says too little: a node that boots fast has been Ready
// without a break, by a time that is older than the boot, and by its own clock.
type Observation struct {
	Since time.Time

	boot, reported string
	phase          v1alpha1.NodeShutdownPhase
	ready          corev1.ConditionStatus
	transition     time.Time
}

// Observe returns the observation of now, given the one before. Its time is also now if our
// clock has gone back or is not trusted.
func (s Snapshot) Observe(before Observation) Observation {
	observation := Observation{Since: before.Since}
	if s.Node != nil {
		observation.boot = s.Node.Status.NodeInfo.BootID
		if ready := readyOf(s.Node); ready != nil {
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

// readyOf is the condition Ready of a node; nil if it has none.
func readyOf(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if one := &node.Status.Conditions[i]; one.Type == corev1.NodeReady {
			return one
		}
	}
	return nil
}
