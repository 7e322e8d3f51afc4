package maintenance

import (
	"fmt"
	"slices"
	"strings"

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

// announcement is what the most advanced maintenances of the node say of it, and who
// they are.
func (o *outcome) announcement() ([len(announced)]conditionChange, string) {
	if len(o.drains) > 0 {
		if slices.ContainsFunc(o.drains, func(one *selection) bool { return !o.drained(one) }) {
			return draining, announcers(o.drains)
		}
		if !slices.ContainsFunc(o.drains, func(one *selection) bool { return !o.back(one) }) {
			return returned, announcers(o.drains)
		}
		return emptied, announcers(o.drains)
	}
	if names := announcers(o.selections); names != "" {
		return planned, names
	}
	return over, ""
}

// namedMaintenances is how many maintenances a message names.
const namedMaintenances = 10

// announcers names the maintenances that are not complete, and their reasons.
func announcers(selections []*selection) string {
	var words []string
	more := 0
	for _, one := range selections {
		if one.maintenance.stage == v1alpha1.StageComplete {
			continue
		}
		if len(words) == namedMaintenances {
			more++
			continue
		}
		word := one.maintenance.name()
		if reason := one.maintenance.object.Spec.Reason; reason != "" {
			word = fmt.Sprintf("%s (%s)", word, reason)
		}
		words = append(words, word)
	}
	text := strings.Join(words, ", ")
	if more > 0 {
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

func (o *outcome) pairOf(changes [len(announced)]conditionChange) pair {
	if foreigndrain.Announced(o.object) != nil {
		return pair{theirs: true}
	}
	at := slices.Index(announced[:], v1alpha1.NodeDrainInProgress)
	return pair{begins: changes[at] == isTrue && o.announcedSince(announced[at]).IsZero()}
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

// announcing is what is written of the conditions of a node.
type announcing struct {
	changed []corev1.NodeCondition
	removed []corev1.NodeConditionType
	// pinned is true if that is only right for the node as it was seen.
	pinned bool
}

// nodeConditions are the conditions of a node that have to change and those that
// have to go. Those that bear somebody else's reason are left alone, but for what is left
// of a drain that is over when ours begins.
func (c *conclusion) nodeConditions(o *outcome) announcing {
	if o.unclear {
		return announcing{}
	}
	changes, message := o.announcement()
	now := metav1.NewTime(c.Now).Rfc3339Copy()
	ofDrain := o.pairOf(changes)
	a := announcing{pinned: ofDrain.begins}
	for i, conditionType := range announced {
		was := findNodeCondition(o.object, conditionType)
		switch {
		case !ofDrain.concerns(conditionType, changes[i], was):
			continue
		case changes[i] == gone:
			a.removed = append(a.removed, conditionType)
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
		a.changed = append(a.changed, next)
	}
	return a
}

// concerns returns true if the change has something to say about a condition that
// was as it is, nil if the node does not have it.
func (c conditionChange) concerns(was *corev1.NodeCondition) bool {
	if was == nil {
		return c == isFalse || c == isTrue
	}
	return c != unchanged && was.Reason == v1alpha1.ReasonNodeMaintenance
}

func findNodeCondition(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == conditionType {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
