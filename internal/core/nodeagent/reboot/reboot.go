// Package reboot decides when the agent of a node reboots it, and whether the node reports that a
// reboot is required. A node reboots for a NodeMaintenance that asks for it, only while it is handed
// over, and only in the boot of the handover: so it reboots once, whatever anybody writes.
package reboot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	maxPackages, maxPackage = 10, 64
	// again is the time after which a reboot is requested again that did not happen.
	again = time.Minute
)

// Snapshot is all that a decision reads. Decide does not change it.
type Snapshot struct {
	Now time.Time
	// BootID is that of the kernel.
	BootID string
	// Node is the agent's; nil is unknown.
	Node *corev1.Node
	// Maintenances are those that Candidates names, as far as the API server has them.
	Maintenances []*v1alpha1.NodeMaintenance
	// Sentinel is nil if the file could not be read, or if none is configured.
	Sentinel *Sentinel
	// Fresh is true for the first decision after a start of the agent.
	Fresh bool
	// Enabled is true if the agent may reboot the node; Requested is the time when it last did.
	Enabled   bool
	Requested time.Time
}

// Sentinel is the file that asks for a reboot.
type Sentinel struct {
	Exists bool
	// Packages are lines of the file beside it, which may be anything.
	Packages []string
}

// Decision holds the agent's actions.
type Decision struct {
	// Condition is to be written to the Node; nil leaves it as it is.
	Condition *corev1.NodeCondition
	// Reboot is true if the node is to be rebooted; Events come before.
	Reboot bool
	Events []event.Event
	// After is the longest delay until the next decision; 0 waits for a change.
	After time.Duration
}

// Candidates returns the names of the NodeMaintenances that the node is handed over to.
func Candidates(node *corev1.Node) []string {
	if node == nil || node.Labels[v1alpha1.HandedOverLabel] == "" || node.Annotations[v1alpha1.HandedOverByAnnotation] == "" {
		return nil
	}
	names := strings.Split(node.Annotations[v1alpha1.HandedOverByAnnotation], ",")
	return names[:min(len(names), handover.MaxNames)]
}

// Decide decides about the agent's node.
func Decide(s Snapshot) Decision {
	d := Decision{Condition: s.condition()}
	if !s.Enabled || s.Node == nil {
		return d
	}
	switch asks := slices.IndexFunc(s.Maintenances, s.asks); {
	case asks < 0:
	case s.Now.Before(s.Requested.Add(again)):
		d.After = s.Requested.Add(again).Sub(s.Now)
	default:
		d.Reboot, d.After = true, again
		d.Events = []event.Event{event.NodeRebooting(s.Node, s.Maintenances[asks].Name)}
	}
	return d
}

// asks returns true if a maintenance has the node reboot now.
func (s *Snapshot) asks(m *v1alpha1.NodeMaintenance) bool {
	_, boot, handedOver := handover.Since(m, s.Node.Name)
	return m.Annotations[v1alpha1.RebootAnnotation] == "true" && maintenance.Stage(m) == v1alpha1.StageDrain &&
		m.Spec.CompleteWhen != nil && m.Spec.CompleteWhen.NewBoot &&
		handedOver && handover.MarkedFor(s.Node, m.Name) && boot == s.BootID && s.Node.Status.NodeInfo.BootID == s.BootID
}

// overtaken returns true if the node has become Ready since the condition was reported as True: an
// agent may report before the kubelet does.
func (s *Snapshot) overtaken(c *corev1.NodeCondition) bool {
	ready := podclass.NodeCondition(s.Node, corev1.NodeReady)
	return c.Status == corev1.ConditionTrue && ready != nil && ready.Status == corev1.ConditionTrue &&
		c.LastHeartbeatTime.Before(&ready.LastTransitionTime) && !s.Now.Before(ready.LastTransitionTime.Time)
}

// condition returns the condition RebootRequired if it changes, once after each start, and each time
// that the node becomes Ready, so that its heartbeat shows that it is of this boot.
func (s *Snapshot) condition() *corev1.NodeCondition {
	if s.Node == nil || s.Sentinel == nil {
		return nil
	}
	next := corev1.NodeCondition{
		Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoRebootSentinel, Message: "No reboot is required.",
	}
	if s.Sentinel.Exists {
		next.Status, next.Reason, next.Message = corev1.ConditionTrue, v1alpha1.ReasonRebootSentinel, s.Sentinel.message()
	}
	now := metav1.NewTime(s.Now).Rfc3339Copy()
	next.LastHeartbeatTime, next.LastTransitionTime = now, now
	if was := podclass.NodeCondition(s.Node, v1alpha1.NodeRebootRequired); was != nil && was.Status == next.Status {
		if !s.Fresh && was.Message == next.Message && was.Reason == next.Reason && !s.overtaken(was) {
			return nil
		}
		next.LastTransitionTime = was.LastTransitionTime
	}
	return &next
}

func (s *Sentinel) message() string {
	var packages []string
	for _, line := range s.Packages {
		if line = excerpt.Line(line, maxPackage); line != "" && !slices.Contains(packages, line) {
			packages = append(packages, line)
		}
	}
	if len(packages) == 0 {
		return "A reboot is required."
	}
	slices.SortFunc(packages, cmp.Compare[string])
	text := strings.Join(packages[:min(len(packages), maxPackages)], ", ")
	if more := len(packages) - maxPackages; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "A reboot is required by " + text + "."
}
