package maintenance

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// announced are the node conditions that announce a maintenance (KEP-5683).
var announced = [...]corev1.NodeConditionType{
	v1alpha1.NodeMaintenancePlanned, v1alpha1.NodeDrainInProgress, v1alpha1.NodeDrained, v1alpha1.NodeMaintenanceInProgress,
}

// announcement is what becomes of each of them.
type announcement [len(announced)]wish

// wish is what becomes of one node condition.
type wish int

const (
	// leave it as it is.
	leave wish = iota
	// retract makes it False if it was announced at all, remove takes it away.
	retract
	remove
	// deny makes it False.
	deny
	// assert makes it True.
	assert
)

var (
	planned  = announcement{assert, retract, retract, retract}
	draining = announcement{retract, assert, deny, leave}
	drained  = announcement{retract, deny, assert, assert}
	over     = announcement{remove, remove, remove, remove}
)

// announcement is what the most advanced intents of the site say of it, and who
// they are.
func (s *site) announcement() (announcement, string) {
	if len(s.drains) > 0 {
		for _, one := range s.drains {
			if !one.drained() {
				return draining, announcers(s.drains)
			}
		}
		return drained, announcers(s.drains)
	}
	for _, one := range s.shares {
		if one.intent.stage != v1alpha1.StageComplete {
			return planned, announcers(s.shares)
		}
	}
	return over, "No maintenance."
}

// announcers names the maintenances and their reasons.
func announcers(shares []*share) string {
	var words []string
	for _, one := range shares {
		if one.intent.stage == v1alpha1.StageComplete {
			continue
		}
		word := one.intent.name()
		if reason := one.intent.object.Spec.Reason; reason != "" {
			word = fmt.Sprintf("%s (%s)", word, reason)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// nodeConditions are the conditions of a site that have to change and those that
// have to go. Those that bear somebody else's reason are left alone.
func (p *pass) nodeConditions(s *site) (changed []corev1.NodeCondition, removed []corev1.NodeConditionType) {
	if s.frozen {
		return nil, nil
	}
	wishes, message := s.announcement()
	now := metav1.NewTime(p.snapshot.Now).Rfc3339Copy()
	for n, conditionType := range announced {
		was := findNodeCondition(s.node, conditionType)
		if !wishes[n].speaks(was) {
			continue
		}
		if wishes[n] == remove {
			removed = append(removed, conditionType)
			continue
		}
		next := corev1.NodeCondition{
			Type: conditionType, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNodeMaintenance, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		if wishes[n] == assert {
			next.Status = corev1.ConditionTrue
		}
		if was != nil && was.Status == next.Status {
			next.LastTransitionTime = was.LastTransitionTime
			if was.Message == next.Message {
				continue
			}
		}
		changed = append(changed, next)
	}
	return changed, removed
}

// speaks returns true if the wish has something to say about a condition that
// was as it is, nil if it was never announced.
func (w wish) speaks(was *corev1.NodeCondition) bool {
	if was == nil {
		return w == deny || w == assert
	}
	return w != leave && was.Reason == v1alpha1.ReasonNodeMaintenance
}

func findNodeCondition(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	for n := range node.Status.Conditions {
		if node.Status.Conditions[n].Type == conditionType {
			return &node.Status.Conditions[n]
		}
	}
	return nil
}
