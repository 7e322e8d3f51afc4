package nodeshutdown

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Sight is what a node shows of its shutdown and of its boot, and since when we have seen
// that. The Ready condition alone says too little: a node that boots fast has been Ready
// without a break, by a time that is older than the boot, and by its own clock.
type Sight struct {
	Since time.Time

	boot, reported string
	phase          v1alpha1.NodeShutdownPhase
	ready          corev1.ConditionStatus
	transition     time.Time
}

// Look is the sight of now, after the one before. It is of now, too, if our clock has gone
// back, or nobody believes it.
func (s Snapshot) Look(before Sight) Sight {
	sight := Sight{Since: before.Since}
	if s.Node != nil {
		sight.boot = s.Node.Status.NodeInfo.BootID
		if ready := readyOf(s.Node); ready != nil {
			sight.ready, sight.transition = ready.Status, ready.LastTransitionTime.UTC()
		}
	}
	if s.Agent != nil {
		sight.reported = s.Agent.Status.BootID
		if told := s.Agent.Status.Shutdown; told != nil {
			sight.phase = told.Phase
		}
	}
	if sight != before || s.Doubt != "" || sight.Since.After(s.Now) {
		sight.Since = s.Now
	}
	return sight
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
