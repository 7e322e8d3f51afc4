// Package announcement decides which conditions of a node announce its maintenances (KEP-5683).
// They are best effort, and those that bear the reason of somebody else are left alone, but for
// what is left of a drain that is over when ours begins.
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
)

// announced are the node conditions that announce a maintenance (KEP-5683).
var announced = [...]corev1.NodeConditionType{
	v1alpha1.NodeMaintenancePlanned, v1alpha1.NodeDrainInProgress, v1alpha1.NodeDrained, v1alpha1.NodeMaintenanceInProgress,
}

// conditionChange is what becomes of a node condition.
type conditionChange int

const (
	// unchanged leaves it as it is, gone takes it away.
	unchanged conditionChange = iota
	gone
	// isFalse makes it False, wasTrue only if the node has it.
	isFalse
	wasTrue
	// isTrue makes it True.
	isTrue
)

// What becomes of each of them while a maintenance is planned, while pods leave, when
// all have left, when the node is back before the maintenance is complete, and when
// there is none. Whoever reboots nodes that are Drained must not do so twice.
var (
	planned  = [len(announced)]conditionChange{isTrue, wasTrue, wasTrue, wasTrue}
	draining = [len(announced)]conditionChange{wasTrue, isTrue, isFalse, unchanged}
	emptied  = [len(announced)]conditionChange{wasTrue, isFalse, isTrue, isTrue}
	returned = [len(announced)]conditionChange{wasTrue, isFalse, isFalse, isFalse}
	over     = [len(announced)]conditionChange{gone, gone, gone, gone}
)

// Node is a node as far as its conditions are concerned.
type Node struct {
	Object *corev1.Node
	// Drains are its maintenances in Drain, Planned all that are not complete, the oldest first.
	Drains, Planned []Maintenance
}

// Maintenance is a maintenance of a node.
type Maintenance struct {
	Name, Reason string
	// Drained is true if the node is drained for it, Back if it has come back after that.
	Drained, Back bool
}

// announcement is what the most advanced maintenances of the node say of it, and who
// they are.
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

// maxNames is how many maintenances a message names.
const maxNames = 10

// names are the names of maintenances and their reasons.
func names(maintenances []Maintenance) string {
	var words []string
	for _, m := range maintenances[:min(len(maintenances), maxNames)] {
		word := m.Name
		if m.Reason != "" {
			word = fmt.Sprintf("%s (%s)", word, m.Reason)
		}
		words = append(words, word)
	}
	text := strings.Join(words, ", ")
	if more := len(maintenances) - len(words); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// pair are the two conditions that tell of a drain. They are of the drain that goes on, or
// of the last one, and change in one write: whoever begins a drain takes both.
type pair struct {
	// theirs is true while somebody else's drain is announced, begins if ours is to be.
	theirs, begins bool
}

func pairOf(node *corev1.Node, changes [len(announced)]conditionChange) pair {
	if foreigndrain.Announced(node) != nil {
		return pair{theirs: true}
	}
	at := slices.Index(announced[:], v1alpha1.NodeDrainInProgress)
	return pair{begins: changes[at] == isTrue && Since(node, announced[at]).IsZero()}
}

// concerns returns true if a change has something to say about a condition that was as it
// is, nil if the node does not have it. Beside a drain of somebody else, the node is not
// said to be drained.
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

// Decision is what is written of the conditions of a node.
type Decision struct {
	// Changed are the conditions to write, Removed those to remove.
	Changed []corev1.NodeCondition
	Removed []corev1.NodeConditionType
	// Pinned is true if that is only right for the node as it was seen: they take the place
	// of what somebody else has written, who may have begun anew.
	Pinned bool
}

// Decide decides about the conditions of a node.
func Decide(n Node, at time.Time) (d Decision) {
	changes, message := announcement(n)
	now := metav1.NewTime(at).Rfc3339Copy()
	ofDrain := pairOf(n.Object, changes)
	for i, conditionType := range announced {
		was := Find(n.Object, conditionType)
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

// concerns returns true if the change has something to say about a condition that
// was as it is, nil if the node does not have it.
func (c conditionChange) concerns(was *corev1.NodeCondition) bool {
	if was == nil {
		return c == isFalse || c == isTrue
	}
	return c != unchanged && was.Reason == v1alpha1.ReasonNodeMaintenance
}

// Find is a condition of a node; nil if it has none of that type.
func Find(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == conditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// Since is since when the node bears a condition of ours; zero if it does not.
func Since(node *corev1.Node, conditionType corev1.NodeConditionType) time.Time {
	was := Find(node, conditionType)
	if was == nil || was.Status != corev1.ConditionTrue || was.Reason != v1alpha1.ReasonNodeMaintenance {
		return time.Time{}
	}
	return was.LastTransitionTime.Time
}

// Types are the types of those conditions of a node that announce a maintenance.
func Types(node *corev1.Node) []corev1.NodeConditionType {
	var types []corev1.NodeConditionType
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Reason == v1alpha1.ReasonNodeMaintenance {
			types = append(types, node.Status.Conditions[i].Type)
		}
	}
	return types
}
