package daemonset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Snapshot holds everything that a decision about an Evacuation reads. Decide does not change it.
type Snapshot struct {
	Now        time.Time
	Evacuation *v1alpha1.Evacuation
	// Pod is the one of the UID in the Evacuation; nil if it is unknown.
	Pod *corev1.Pod
	// Node is the pod's node; nil if it does not exist.
	Node         *corev1.Node
	Maintenances []*v1alpha1.NodeMaintenance
}

// Decision holds what the evacuator does. The shell writes Status first.
type Decision struct {
	// Status is the whole status; nil if it does not change.
	Status *v1alpha1.EvacuationStatus
	// Delete is true if the pod is deleted, with its own grace period.
	Delete bool
	Events []event.Event
}

// Active returns true if our evacuator is the active one.
func Active(e *v1alpha1.Evacuation) bool {
	return e.Status.ActiveEvacuatorClass == v1alpha1.DaemonSetEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
}

// Decide returns what the evacuator does about an Evacuation. It does nothing while it is not
// active, and for a pod that is terminating or gone.
func Decide(s Snapshot) Decision {
	switch {
	case !Active(s.Evacuation), s.Pod == nil, podclass.Terminal(s.Pod):
		return Decision{}
	case len(evacuation.Instigators(s.Evacuation)) == 0, s.Evacuation.Name != evacuation.Name(s.Pod):
		return Decision{}
	case podclass.Type(s.Pod) != v1alpha1.PodTypeDaemonSet:
		return decline(s)
	}
	if why := obstacle(s); why != "" {
		return wait(s, why)
	}
	return remove(s)
}

// decline completes our part for a pod that registered our class and belongs to no DaemonSet.
func decline(s Snapshot) Decision {
	status := s.Evacuation.Status.DeepCopy()
	status.ActiveEvacuatorCompleted = true
	status.EvacuationProgressTimestamp = &metav1.Time{Time: s.Now}
	status.Message = fmt.Sprintf("Pod %s belongs to no DaemonSet, evacuator %s has nothing to do.", s.Pod.Name, v1alpha1.DaemonSetEvacuatorClass)
	return Decision{Status: status}
}

func obstacle(s Snapshot) string {
	if behavior, _ := podclass.DrainLabel(s.Pod); behavior != v1alpha1.DrainBehaviorDrain {
		return fmt.Sprintf("Pod %s stays because of its label %s=%s.", s.Pod.Name, v1alpha1.DrainLabel, s.Pod.Labels[v1alpha1.DrainLabel])
	}
	if s.Node == nil {
		return fmt.Sprintf("Node %s does not exist, so Kubernetes removes pod %s by itself.", s.Pod.Spec.NodeName, s.Pod.Name)
	}
	suppressed, err := cordon.Suppressed(s.Node)
	switch {
	case err != nil:
		return fmt.Sprintf("Pod %s stays because the drain targets of its node are unknown: %v", s.Pod.Name, err)
	case suppressed.Empty():
		return fmt.Sprintf("Pod %s waits for a NodeMaintenance that removes the DaemonSet pods of node %s.",
			s.Pod.Name, s.Node.Name)
	case !suppressed.Covers(s.Pod):
		return fmt.Sprintf("Pod %s leaves in a later wave of node %s. Leaving now: %s.",
			s.Pod.Name, s.Node.Name, suppressed.Key())
	}
	return ""
}

// wait reports why the evacuator waits. It neither completes nor reports progress (KEP-4212).
func wait(s Snapshot, why string) Decision {
	if s.Pod.DeletionTimestamp != nil {
		return Decision{}
	}
	status := withMessage(s.Evacuation, why)
	if status != nil {
		status.ExpectedEvacuationFinishTime = nil
	}
	return Decision{Status: status}
}

// withMessage returns the status with a message; nil if nothing changes or a timeout is reported.
func withMessage(e *v1alpha1.Evacuation, message string) *v1alpha1.EvacuationStatus {
	if e.Status.Message == message || meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEvictionRefused) {
		return nil
	}
	status := e.Status.DeepCopy()
	status.Message = message
	return status
}

// remove announces the deletion once, deletes the pod, and corrects the message of a refusal.
func remove(s Snapshot) Decision {
	message := message(s)
	terminating := s.Pod.DeletionTimestamp != nil
	d := Decision{Delete: !terminating}
	switch {
	case !announced(s.Evacuation) && !terminating:
		d.Status = s.Evacuation.Status.DeepCopy()
		d.Status.EvacuationProgressTimestamp = &metav1.Time{Time: s.Now}
		d.Status.ExpectedEvacuationFinishTime = &metav1.Time{Time: s.Now.Add(grace(s.Pod))}
		d.Status.Message = message
	case announced(s.Evacuation) && terminating:
		d.Status = withMessage(s.Evacuation, message)
	}
	if d.Delete {
		d.Events = []event.Event{event.DaemonSetPodDeleted(s.Evacuation, message)}
	}
	return d
}

func announced(e *v1alpha1.Evacuation) bool { return e.Status.ExpectedEvacuationFinishTime != nil }

// message returns the message of KEP-4212.
func message(s Snapshot) string {
	because := ""
	if reason := maintenance.Reason(s.Node, s.Maintenances); reason != "" {
		because = fmt.Sprintf(" (%s)", reason)
	}
	return fmt.Sprintf("%s is terminating the pod due to node maintenance%s.", podclass.Owner(s.Pod).Name, because)
}

func grace(pod *corev1.Pod) time.Duration {
	seconds := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	return time.Duration(seconds) * time.Second
}

// Refuse returns the status that reports a refused deletion; nil if it does already.
func Refuse(e *v1alpha1.Evacuation, refusal string) *v1alpha1.EvacuationStatus {
	return withMessage(e, evacuation.Shorten(fmt.Sprintf("Deleting pod %s is refused and tried again: %s", e.Spec.PodRef.Name, refusal)))
}

// Return returns the status that reports a pod that came back; nil if it does already.
func Return(e *v1alpha1.Evacuation) *v1alpha1.EvacuationStatus {
	return withMessage(e, fmt.Sprintf("Pod %s came back to its node during the maintenance and is deleted again in a while. "+
		"If that goes on, see why policy ebbtide-daemonset-pods, before Kubernetes 1.36 webhook daemonset-pods.ebbtide.dev, does not hold it back.", e.Spec.PodRef.Name))
}
