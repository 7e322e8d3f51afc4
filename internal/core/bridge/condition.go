package bridge

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maxReport is how many bytes of a report are shown.
const maxReport = 8 << 10

// condition returns what the Machine shows of a drain by a kubeconfig: nothing else in the
// cluster of the Machine does. A NodeMaintenance shows its own.
func (s Snapshot) condition(d Decision) *metav1.Condition {
	if d.Said == nil || !d.Remote && s.Machine.Drained == nil {
		return nil
	}
	is := metav1.Condition{
		Type: v1alpha1.ConditionBridgeDrained, Status: metav1.ConditionFalse, Reason: d.Said.Reason, Message: d.Said.Message,
		LastTransitionTime: metav1.NewTime(s.Now).Rfc3339Copy(),
	}
	if d.Hook == Finish {
		is.Status = metav1.ConditionTrue
	} else if d.Remote && s.Remote != nil && s.Remote.Report != "" {
		is.Message = excerpt.Of(fmt.Sprintf("%s left on %s. %s", podsInWords(s.Remote.Left), s.Machine.Node, s.Remote.Report), maxReport)
	}
	before := s.Machine.Drained
	switch {
	case before == nil || before.Status != is.Status:
	case before.Reason == is.Reason && before.Message == is.Message:
		return nil
	default:
		is.LastTransitionTime = before.LastTransitionTime
	}
	return &is
}
