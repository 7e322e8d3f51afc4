// Package nodeshutdown decides which NodeMaintenance a node gets when its NodeAgent reports a
// shutdown, and when that maintenance ends (KEP-4212, "kubelet: Graceful Node Shutdown"). An
// agent can only have its own node drained. The deadline is the time at which the node goes
// down. The maintenance is deleted at the end. Unknown ends nothing, and NodeMaintenances of
// others are never changed.
package nodeshutdown

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// lead is the time before a scheduled shutdown at which its drain starts.
	lead = time.Hour
	// settled is the time that a node must be Ready after its boot.
	settled     = 30 * time.Second
	longestWait = 24 * time.Hour
)

// Snapshot is all that a decision reads. Decide does not change it.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	Agent       *v1alpha1.NodeAgent
	// Node is nil if it is gone.
	Node     *corev1.Node
	Existing *v1alpha1.NodeMaintenance
	// Others are all NodeMaintenances; only read without Existing.
	Others []*v1alpha1.NodeMaintenance
	Since  time.Time
	Options
}

// Options apply to all shutdowns.
type Options struct {
	// StayCordoned leaves the end of the maintenance to a user.
	StayCordoned bool
	// Depth is the last type of pods to drain. Defaults to DaemonSet.
	Depth        v1alpha1.PodType
	DeleteBefore DeleteBefore
	// Priorities are ascending and each start another step; at most 16.
	Priorities []int32
}

// Decision holds the next writes.
type Decision struct {
	Create *v1alpha1.NodeMaintenance
	// Follow is the changed Existing, to be written under its version.
	Follow *v1alpha1.NodeMaintenance
	Delete bool
	Events []event.Event
	// RequeueAfter is the longest delay until the next decision; 0 is never.
	RequeueAfter time.Duration
}

// Name returns the name of the NodeMaintenance for the shutdown of a node.
func Name(node string) string { return maintenance.ShutdownName(node) }

// Ours reports whether a maintenance was created for the shutdown of a node.
func Ours(m *v1alpha1.NodeMaintenance, node string) bool { return maintenance.OfShutdown(m) == node }

// Decide returns what happens next for the shutdown of one node.
func Decide(s Snapshot) Decision {
	ours := s.Existing != nil && s.Node != nil && Ours(s.Existing, s.Node.Name)
	switch {
	case s.Node == nil:
		// A later Node of the same name is another one.
		return Decision{Delete: s.Existing != nil && s.Existing.DeletionTimestamp == nil && Ours(s.Existing, s.gone())}
	case s.Agent == nil || s.Agent.Status.Shutdown == nil:
		return Decision{}
	case s.unknown():
		return Decision{}
	}
	stage, reason, after := s.wanted()
	switch {
	case stage == "" && ours && s.Existing.DeletionTimestamp == nil:
		d := s.end()
		d.RequeueAfter = soonest(d.RequeueAfter, after)
		return d
	case stage == "":
		return Decision{RequeueAfter: after}
	case ours:
		return Decision{Follow: s.follow(stage, reason), RequeueAfter: after}
	case s.Existing != nil:
		return s.decline(fmt.Sprintf("NodeMaintenance %s exists and was not created for a shutdown. To drain the node for shutdowns, delete it", s.Existing.Name))
	}
	if other := s.covering(); other != nil {
		return s.decline(fmt.Sprintf("it reboots for NodeMaintenance %s", other.Name))
	}
	return Decision{Create: s.maintenance(stage, reason)}
}

func (s Snapshot) gone() string {
	if s.Agent != nil {
		return s.Agent.Name
	}
	return maintenance.OfShutdown(s.Existing)
}

// unknown reports whether the agent cannot observe shutdowns, so that nothing changes.
func (s Snapshot) unknown() bool {
	told := s.Agent.Status.Shutdown
	over := told.Phase == v1alpha1.ShutdownNone || told.Phase == v1alpha1.ShutdownCancelled
	return told.Mode == v1alpha1.ShutdownModeOff && !over && !s.booted()
}

func (s Snapshot) wanted() (stage v1alpha1.NodeMaintenanceStage, reason string, after time.Duration) {
	told := s.Agent.Status.Shutdown
	kind := told.Type
	kind = cmp.Or(kind, "unknown")
	if s.booted() {
		return "", "", 0
	}
	switch told.Phase {
	case v1alpha1.ShutdownScheduled:
		return s.scheduled(told, kind)
	case v1alpha1.ShutdownPreparing:
	case v1alpha1.ShutdownReleased:
		// It is too late to start.
		if s.Existing == nil {
			return "", "", 0
		}
	default:
		return "", "", 0
	}
	stage = v1alpha1.StageDrain
	if s.kubeletStops() {
		stage = v1alpha1.StageCordon
	}
	return stage, fmt.Sprintf("Node %s is shutting down (%s)", s.Node.Name, kind), 0
}

func (s Snapshot) scheduled(told *v1alpha1.NodeShutdown, kind string) (stage v1alpha1.NodeMaintenanceStage, reason string, after time.Duration) {
	if told.DeadlineTime == nil || s.ClockSkewed && s.Existing == nil {
		return "", "", 0
	}
	ahead := told.DeadlineTime.Sub(s.Now)
	switch {
	case ahead > lead:
		return "", "", min(ahead-lead, longestWait)
	case ahead <= 0 && s.Existing == nil:
		return "", "", 0
	}
	return v1alpha1.StageDrain, fmt.Sprintf("Node %s will shut down at %s (%s)", s.Node.Name, told.DeadlineTime.UTC().Format(time.RFC3339), kind), 0
}

func (s Snapshot) booted() bool {
	said, is := s.Agent.Status.BootID, s.Node.Status.NodeInfo.BootID
	return said != "" && is != "" && said != is
}

func (s Snapshot) end() Decision {
	switch phase := s.Agent.Status.Shutdown.Phase; {
	case phase == v1alpha1.ShutdownCancelled && !s.booted():
		return Decision{Delete: true, Events: []event.Event{event.NodeShutdownEnded(s.Existing, "The shutdown was cancelled.")}}
	case phase == v1alpha1.ShutdownScheduled && !s.booted():
		if s.ClockSkewed {
			return Decision{}
		}
		return Decision{Delete: true, Events: []event.Event{event.NodeShutdownEnded(s.Existing, "The shutdown was postponed.")}}
	case s.StayCordoned:
		return Decision{}
	}
	left := s.Since.Add(settled).Sub(s.Now)
	switch ready := podclass.NodeCondition(s.Node, corev1.NodeReady); {
	case ready == nil || ready.Status != corev1.ConditionTrue || s.ClockSkewed:
		return Decision{}
	case left > 0:
		return Decision{RequeueAfter: left}
	}
	return Decision{Delete: true, Events: []event.Event{event.NodeShutdownEnded(s.Existing, "The node is running again.")}}
}

// covering returns a maintenance for which the node reboots, so that it needs no other.
func (s Snapshot) covering() *v1alpha1.NodeMaintenance {
	for _, m := range s.Others {
		if m.DeletionTimestamp != nil || m.Spec.Stage != v1alpha1.StageDrain {
			continue
		}
		if m.Spec.InPlace == nil && !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
			continue
		}
		if matching, err := maintenance.Matching(&m.Spec, []*corev1.Node{s.Node}); err == nil && len(matching) > 0 {
			return m
		}
	}
	return nil
}

func (s Snapshot) decline(why string) Decision {
	return Decision{Events: []event.Event{event.NodeShutdownDetected(s.Node, "The node is not drained for its shutdown: "+why+".")}}
}

// maintenance returns the NodeMaintenance for the shutdown, with all defaults.
func (s Snapshot) maintenance(stage v1alpha1.NodeMaintenanceStage, reason string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name:       Name(s.Node.Name),
			Labels:     map[string]string{v1alpha1.CreatedByLabel: v1alpha1.CreatedByNodeAgent},
			Finalizers: []string{v1alpha1.MaintenanceCompletionFinalizer},
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			NodeSelector: maintenance.SelectNode(s.Node.Name),
			Stage:        stage, DrainPlan: s.plan(), DrainDepth: cmp.Or(s.Depth, v1alpha1.PodTypeDaemonSet), Reason: reason,
			Deadline: s.deadline(stage),
		},
	}
}

func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
