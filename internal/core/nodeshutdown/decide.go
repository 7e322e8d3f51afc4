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
)

const (
	// lead is how long before a scheduled shutdown its drain begins: a node that is to
	// reboot tonight is not empty all day.
	lead = time.Hour
	// settled is how long a node has to be Ready after its boot, as far as we have seen it.
	settled = 30 * time.Second
	// longestWait bounds when to look again.
	longestWait = 24 * time.Hour
)

// Snapshot is all that a decision reads. It is never changed by Decide.
type Snapshot struct {
	// Now is the time of the decision.
	Now time.Time
	// ClockSkewed is true while that is not trusted; see package skew.
	ClockSkewed bool
	// Agent is that of the node; nil if there is none.
	Agent *v1alpha1.NodeAgent
	// Node is the node; nil if it is gone.
	Node *corev1.Node
	// Existing is the NodeMaintenance with the Name of the node; nil if there is none.
	Existing *v1alpha1.NodeMaintenance
	// Others are all NodeMaintenances, as far as there is no Existing.
	Others []*v1alpha1.NodeMaintenance
	// Since is since when the node has been as it is: the Observation of now says it.
	Since time.Time
	// Options are what the administrator wants.
	Options
}

// Options are what the administrator wants of all shutdowns.
type Options struct {
	// StayCordoned is true if a person ends the maintenance after the boot.
	StayCordoned bool
	// Depth is which pods are drained; empty is those of DaemonSets and all before them.
	Depth v1alpha1.PodType
	// DeleteBefore is when what is left begins to be deleted.
	DeleteBefore DeleteBefore
	// Priorities are those at which pods leave in another step, ascending; at most 16. Empty
	// adds no step to those of every drain.
	Priorities []int32
}

// Decision is what is done.
type Decision struct {
	// Create is to be created; nil if nothing is.
	Create *v1alpha1.NodeMaintenance
	// Follow is what Existing is to be changed to, under its version; nil leaves it alone.
	Follow *v1alpha1.NodeMaintenance
	// Delete is true if Existing is to be deleted.
	Delete bool
	// Events are true when that is done.
	Events []event.Event
	// RequeueAfter is when to decide again at the latest; 0 is never.
	RequeueAfter time.Duration
}

// Name is that of the NodeMaintenance for the shutdown of a node.
func Name(node string) string { return maintenance.ShutdownName(node) }

// Ours is true of what a decision made for the shutdown of a node.
func Ours(m *v1alpha1.NodeMaintenance, node string) bool { return maintenance.OfShutdown(m) == node }

// Decide says what becomes of the shutdown of one node.
func Decide(s Snapshot) Decision {
	ours := s.Existing != nil && s.Node != nil && Ours(s.Existing, s.Node.Name)
	switch {
	case s.Node == nil:
		// A node that comes by its name is another one.
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
		return s.decline(fmt.Sprintf("NodeMaintenance %s is there already and is somebody else's: delete it, so that Ebbtide can drain the node when it shuts down", s.Existing.Name))
	}
	if other := s.covering(); other != nil {
		return s.decline(fmt.Sprintf("%s has drained it, or keeps pods on it: this is its reboot", other.Name))
	}
	return Decision{Create: s.maintenance(stage, reason)}
}

// gone is the name of the node that is gone, as far as somebody tells it.
func (s Snapshot) gone() string {
	if s.Agent != nil {
		return s.Agent.Name
	}
	return maintenance.OfShutdown(s.Existing)
}

// unknown is true while nobody tells the agent whether a shutdown goes on: nothing begins
// because of it, and nothing ends.
func (s Snapshot) unknown() bool {
	told := s.Agent.Status.Shutdown
	over := told.Phase == v1alpha1.ShutdownNone || told.Phase == v1alpha1.ShutdownCancelled
	return told.Mode == v1alpha1.ShutdownModeOff && !over && !s.booted()
}

// wanted is the stage that the node is to be in because of its shutdown; empty is none.
func (s Snapshot) wanted() (stage v1alpha1.NodeMaintenanceStage, reason string, after time.Duration) {
	told := s.Agent.Status.Shutdown
	kind := told.Type
	if kind == "" {
		kind = "unknown"
	}
	if s.booted() {
		return "", "", 0
	}
	switch told.Phase {
	case v1alpha1.ShutdownScheduled:
		return s.scheduled(told, kind)
	case v1alpha1.ShutdownPreparing:
	case v1alpha1.ShutdownReleased:
		// What has not begun by then has no time any more.
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

// scheduled is for a shutdown that has a time.
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
	return v1alpha1.StageDrain, fmt.Sprintf("Node %s is to shut down at %s (%s)", s.Node.Name, told.DeadlineTime.UTC().Format(time.RFC3339), kind), 0
}

// booted is true if the node has booted since its agent last said anything.
func (s Snapshot) booted() bool {
	said, is := s.Agent.Status.BootID, s.Node.Status.NodeInfo.BootID
	return said != "" && is != "" && said != is
}

// end is what becomes of the maintenance of a shutdown that is over, or put off.
func (s Snapshot) end() Decision {
	switch phase := s.Agent.Status.Shutdown.Phase; {
	case phase == v1alpha1.ShutdownCancelled && !s.booted():
		return Decision{Delete: true, Events: []event.Event{event.NodeShutdownEnded(s.Existing, "The node does not shut down after all.")}}
	case phase == v1alpha1.ShutdownScheduled && !s.booted():
		if s.ClockSkewed {
			return Decision{}
		}
		return Decision{Delete: true, Events: []event.Event{event.NodeShutdownEnded(s.Existing, "The shutdown of the node is put off.")}}
	case s.StayCordoned:
		return Decision{}
	}
	left := s.Since.Add(settled).Sub(s.Now)
	switch ready := readyOf(s.Node); {
	case ready == nil || ready.Status != corev1.ConditionTrue || s.ClockSkewed:
		return Decision{}
	case left > 0:
		return Decision{RequeueAfter: left}
	}
	return Decision{Delete: true, Events: []event.Event{event.NodeShutdownEnded(s.Existing, "The node is up again.")}}
}

// covering is a maintenance for which the node reboots: pods that stay in place are not
// to be evicted, and one that is empty needs no other.
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

// maintenance is the one for the shutdown. The webhooks leave the manager alone, so that
// it is complete.
func (s Snapshot) maintenance(stage v1alpha1.NodeMaintenanceStage, reason string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name:       Name(s.Node.Name),
			Labels:     map[string]string{v1alpha1.CreatedByLabel: v1alpha1.CreatedByNodeAgent},
			Finalizers: []string{v1alpha1.MaintenanceCompletionFinalizer},
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{s.Node.Name}},
			}}}},
			Stage: stage, DrainPlan: s.plan(), DrainDepth: cmp.Or(s.Depth, v1alpha1.PodTypeDaemonSet), Reason: reason,
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
