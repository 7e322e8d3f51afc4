package bridge

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const maxReport = 8 << 10

// condition reports a drain by kubeconfig on the Machine. A NodeMaintenance reports its own drain.
func (s Snapshot) condition(d Decision) *metav1.Condition {
	if d.Said == nil || s.Machine.Bridge != ClusterAPI ||
		!d.Remote && s.Machine.Drained == nil && d.Said.Reason != v1alpha1.EventBridgeWaiting {
		return nil
	}
	is := metav1.Condition{
		Type: v1alpha1.ConditionBridgeDrained, Status: metav1.ConditionFalse, Reason: d.Said.Reason, Message: d.Said.Message,
		LastTransitionTime: metav1.NewTime(s.Now).Rfc3339Copy(),
	}
	switch {
	case d.Hook == Finish:
		is.Status = metav1.ConditionTrue
	case d.Remote && s.Remote != nil && s.Remote.Report != "":
		is.Message = excerpt.Of(fmt.Sprintf("%s left on %s. %s", phrase.Count(s.Remote.Left, "pod"), s.Machine.Node, s.Remote.Report), maxReport)
	case !d.Remote && is.Reason == v1alpha1.EventBridgeDraining:
		is.Message = fmt.Sprintf("%s is drained by NodeMaintenance %s, which shows the progress.", s.Machine.Node, s.Maintenance.Name)
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
