package shutdown

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const maxMessage = 1024

// SetStatus writes the shutdown into the status of a NodeAgent.
func (d Decision) SetStatus(status *v1alpha1.NodeAgentStatus, now time.Time) {
	status.Shutdown = d.Status.DeepCopy()
	condition := metav1.Condition{
		Type: v1alpha1.ConditionShutdownManageable, Status: metav1.ConditionFalse, Reason: d.Manageable.Reason,
		Message: excerpt.Line(d.Manageable.Message, maxMessage), LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)},
	}
	if d.Manageable.OK {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// ours are our reasons of the condition. Other reasons belong to the kubelet or others.
var ours = []string{v1alpha1.ReasonNodeShutdown, v1alpha1.ReasonNodeShutdownCancelled, v1alpha1.ReasonNodeReady}

func (s Snapshot) nodeCondition(e *Entry) *corev1.NodeCondition {
	was := podclass.NodeCondition(s.Node, v1alpha1.NodeGracefulShutdown)
	if s.Node == nil || was != nil && !slices.Contains(ours, was.Reason) {
		return nil
	}
	next := corev1.NodeCondition{Type: v1alpha1.NodeGracefulShutdown, Status: corev1.ConditionFalse}
	switch {
	case e != nil && e.underWay():
		next.Status, next.Reason, next.Message = corev1.ConditionTrue, v1alpha1.ReasonNodeShutdown, "The node shuts down ("+e.Type+")."
	case was == nil || was.Status == corev1.ConditionFalse || s.Logind.Fault != "":
		return nil
	case e != nil && e.Phase == v1alpha1.ShutdownCancelled:
		next.Reason, next.Message = v1alpha1.ReasonNodeShutdownCancelled, "The shutdown was cancelled."
	default:
		next.Reason, next.Message = v1alpha1.ReasonNodeReady, "The node is running."
	}
	if was != nil && was.Status == next.Status && was.Reason == next.Reason {
		return nil
	}
	next.LastTransitionTime = metav1.NewTime(s.Now).Rfc3339Copy()
	next.LastHeartbeatTime = next.LastTransitionTime
	return &next
}
