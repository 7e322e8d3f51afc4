package maintenance

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// announced are the node conditions that announce a maintenance (KEP-5683), in
// the order in which it goes through them.
var announced = []corev1.NodeConditionType{
	v1alpha1.NodeMaintenancePlanned, v1alpha1.NodeDrainInProgress, v1alpha1.NodeDrained, v1alpha1.NodeMaintenanceInProgress,
}

// nodeConditions are the conditions of a site that have to change. Somebody
// else's are left alone.
func (p *pass) nodeConditions(s *site) []corev1.NodeCondition {
	wanted, message := s.announcement()
	now := metav1.NewTime(p.snapshot.Now).Rfc3339Copy()
	var changed []corev1.NodeCondition
	for _, conditionType := range announced {
		status, speaks := wanted[conditionType]
		if !speaks {
			continue
		}
		next := corev1.NodeCondition{
			Type: conditionType, Status: status, Reason: v1alpha1.ReasonNodeMaintenance, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		was := findNodeCondition(s.node, conditionType)
		switch {
		case was == nil && status == corev1.ConditionFalse && conditionType != v1alpha1.NodeDrained:
			// What was never announced need not be taken back.
			continue
		case was != nil && (was.Reason != v1alpha1.ReasonNodeMaintenance || was.Status == status && was.Message == message):
			continue
		case was != nil && was.Status == status:
			next.LastTransitionTime = was.LastTransitionTime
		}
		changed = append(changed, next)
	}
	return changed
}

// announcement is what the site's most advanced intents announce together.
// Conditions that are not in the map stay as they are.
func (s *site) announcement() (map[corev1.NodeConditionType]corev1.ConditionStatus, string) {
	planned, drained := false, len(s.drains) > 0
	for _, one := range s.shares {
		planned = planned || one.intent.stage != v1alpha1.StageComplete
	}
	for _, one := range s.drains {
		drained = drained && one.drained()
	}
	switch {
	case drained:
		return map[corev1.NodeConditionType]corev1.ConditionStatus{
			v1alpha1.NodeMaintenancePlanned:    corev1.ConditionFalse,
			v1alpha1.NodeDrainInProgress:       corev1.ConditionFalse,
			v1alpha1.NodeDrained:               corev1.ConditionTrue,
			v1alpha1.NodeMaintenanceInProgress: corev1.ConditionTrue,
		}, s.announcers(s.drains)
	case len(s.drains) > 0:
		return map[corev1.NodeConditionType]corev1.ConditionStatus{
			v1alpha1.NodeMaintenancePlanned: corev1.ConditionFalse,
			v1alpha1.NodeDrainInProgress:    corev1.ConditionTrue,
			v1alpha1.NodeDrained:            corev1.ConditionFalse,
		}, s.announcers(s.drains)
	case planned:
		wanted, _ := s.silence()
		wanted[v1alpha1.NodeMaintenancePlanned] = corev1.ConditionTrue
		return wanted, s.announcers(s.shares)
	default:
		return s.silence()
	}
}

// silence takes back what was announced.
func (s *site) silence() (map[corev1.NodeConditionType]corev1.ConditionStatus, string) {
	wanted := map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for _, conditionType := range announced {
		if findNodeCondition(s.node, conditionType) != nil {
			wanted[conditionType] = corev1.ConditionFalse
		}
	}
	return wanted, "No maintenance."
}

// announcers names the maintenances and their reasons.
func (*site) announcers(shares []*share) string {
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

func findNodeCondition(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	for n := range node.Status.Conditions {
		if node.Status.Conditions[n].Type == conditionType {
			return &node.Status.Conditions[n]
		}
	}
	return nil
}
