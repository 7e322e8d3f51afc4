// Package announcement decides which conditions of a node announce its maintenances (KEP-5683).
// They are best effort. Conditions with a foreign reason stay, except those left of a drain that
// is over when ours begins.
package announcement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

var announced = [...]corev1.NodeConditionType{
	v1alpha1.NodeMaintenancePlanned, v1alpha1.NodeDrainInProgress, v1alpha1.NodeDrained, v1alpha1.NodeMaintenanceInProgress,
}

type conditionChange int

const (
	unchanged conditionChange = iota
	gone
	isFalse
	wasTrue // False if the node has it
	isTrue
)

// These are the changes of each condition while a maintenance is planned, while pods leave, when
// all have left, when the node is back before the maintenance is complete, and when there is none.
// A node that is back is not Drained, so that it is not rebooted twice.
var (
	planned  = [len(announced)]conditionChange{isTrue, wasTrue, wasTrue, wasTrue}
	draining = [len(announced)]conditionChange{wasTrue, isTrue, isFalse, unchanged}
	emptied  = [len(announced)]conditionChange{wasTrue, isFalse, isTrue, isTrue}
	returned = [len(announced)]conditionChange{wasTrue, isFalse, isFalse, isFalse}
	over     = [len(announced)]conditionChange{gone, gone, gone, gone}
)

// Node holds what the conditions of a node depend on.
type Node struct {
	Object *corev1.Node
	// Drains are its maintenances in Drain, Planned all that are not complete, oldest first.
	Drains, Planned []Maintenance
}

// Maintenance is a maintenance of a node.
type Maintenance struct {
	Name, Reason  string
	Drained, Back bool
}

// announcement returns the changes for the most advanced maintenances of the node, and their names.
func announcement(n Node) ([len(announced)]conditionChange, string) {
	switch {
	case len(n.Drains) == 0 && len(n.Planned) == 0:
		return over, ""
	case len(n.Drains) == 0:
		return planned, names(n.Planned)
	case slices.ContainsFunc(n.Drains, func(m Maintenance) bool { return !m.Drained }):
		return draining, names(n.Drains)
	case slices.ContainsFunc(n.Drains, func(m Maintenance) bool { return !m.Back }):
		return emptied, names(n.Drains)
	}
	return returned, names(n.Drains)
}

const maxNames = 10 // in a message

func names(maintenances []Maintenance) string {
	var words []string
	for _, m := range maintenances[:min(len(maintenances), maxNames)] {
		name := m.Name
		if m.Reason != "" {
			name = fmt.Sprintf("%s (%s)", name, m.Reason)
		}
		words = append(words, name)
	}
	text := strings.Join(words, ", ")
	if more := len(maintenances) - len(words); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// pair holds both conditions of a drain, the present or the last one. They change in one write.
type pair struct {
	// theirs is true while a foreign drain is announced, begins if ours is to be.
	theirs, begins bool
}

func pairOf(node *corev1.Node, changes [len(announced)]conditionChange) pair {
	if foreigndrain.Announced(node) != nil {
		return pair{theirs: true}
	}
	at := slices.Index(announced[:], v1alpha1.NodeDrainInProgress)
	return pair{begins: changes[at] == isTrue && Since(node, announced[at]).IsZero()}
}

// concerns returns true if a change applies to a condition, nil if the node does not have it.
// During a foreign drain the node is not announced as drained.
func (p pair) concerns(conditionType corev1.NodeConditionType, change conditionChange, was *corev1.NodeCondition) bool {
	switch {
	case conditionType != v1alpha1.NodeDrainInProgress && conditionType != v1alpha1.NodeDrained:
		return change.concerns(was)
	case p.begins:
		return true
	case p.theirs && (was == nil || change == isTrue):
		return false
	}
	return change.concerns(was)
}

// Decision holds what is written of the conditions of a node.
type Decision struct {
	Changed []corev1.NodeCondition
	Removed []corev1.NodeConditionType
	// Pinned is true if Changed replaces conditions of another drain, so only in the observed
	// version.
	Pinned bool
}

// Decide decides about the conditions of a node.
func Decide(n Node, at time.Time) (d Decision) {
	changes, message := announcement(n)
	now := metav1.NewTime(at).Rfc3339Copy()
	ofDrain := pairOf(n.Object, changes)
	for i, conditionType := range announced {
		was := podclass.NodeCondition(n.Object, conditionType)
		switch {
		case !ofDrain.concerns(conditionType, changes[i], was):
			continue
		case changes[i] == gone:
			d.Removed = append(d.Removed, conditionType)
			continue
		}
		next := corev1.NodeCondition{
			Type: conditionType, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNodeMaintenance, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		if changes[i] == isTrue {
			next.Status = corev1.ConditionTrue
		}
		if was != nil && was.Status == next.Status {
			next.LastTransitionTime = was.LastTransitionTime
			if was.Message == next.Message && was.Reason == next.Reason {
				continue
			}
		}
		d.Changed = append(d.Changed, next)
	}
	d.Pinned = ofDrain.begins && len(d.Changed) > 0
	return d
}

func (c conditionChange) concerns(was *corev1.NodeCondition) bool {
	if was == nil {
		return c == isFalse || c == isTrue
	}
	return c != unchanged && was.Reason == v1alpha1.ReasonNodeMaintenance
}

// Since returns when a condition of ours became True on the node; zero if it is not.
func Since(node *corev1.Node, conditionType corev1.NodeConditionType) time.Time {
	was := podclass.NodeCondition(node, conditionType)
	if was == nil || was.Status != corev1.ConditionTrue || was.Reason != v1alpha1.ReasonNodeMaintenance {
		return time.Time{}
	}
	return was.LastTransitionTime.Time
}

// Types returns the types of the node's conditions that announce a maintenance.
func Types(node *corev1.Node) []corev1.NodeConditionType {
	var types []corev1.NodeConditionType
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Reason == v1alpha1.ReasonNodeMaintenance {
			types = append(types, node.Status.Conditions[i].Type)
		}
	}
	return types
}
