package daemonset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Snapshot is everything that a decision about an Evacuation reads. It is never
// changed by Decide.
type Snapshot struct {
	// Now is the time of the decision.
	Now time.Time
	// Evacuation is the object.
	Evacuation *v1alpha1.Evacuation
	// Pod is the pod that the Evacuation names, by UID; nil if it is not known.
	Pod *corev1.Pod
	// Node is the pod's node; nil if it does not exist.
	Node *corev1.Node
	// Maintenances are all NodeMaintenances, in any order.
	Maintenances []*v1alpha1.NodeMaintenance
}

// Decision is what the evacuator does. The shell writes Status first.
type Decision struct {
	// Status is the whole status to be written; nil if it stays as it is.
	Status *v1alpha1.EvacuationStatus
	// Delete is true if the pod is to be deleted, with its own grace period.
	Delete bool
	// Events become true with the deletion.
	Events []event.Event
}

// Active returns true if it is our turn to move the pod.
func Active(e *v1alpha1.Evacuation) bool {
	return e.Status.ActiveEvacuatorClass == v1alpha1.DaemonSetEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
}

// Decide returns what the evacuator does about an Evacuation. It does nothing
// while it is not its turn, and for a pod that leaves or is gone already.
func Decide(s Snapshot) Decision {
	switch {
	case !Active(s.Evacuation), s.Pod == nil, podclass.Terminal(s.Pod):
		return Decision{}
	case len(evacuation.Instigators(s.Evacuation)) == 0, s.Evacuation.Name != evacuation.Name(s.Pod):
		return Decision{}
	case podclass.Type(s.Pod) != v1alpha1.PodTypeDaemonSet:
		return pass(s)
	}
	if why := obstacle(s); why != "" {
		return wait(s, why)
	}
	return remove(s)
}

// pass leaves a pod that registered our class and belongs to no DaemonSet to
// whoever comes next.
func pass(s Snapshot) Decision {
	status := s.Evacuation.Status.DeepCopy()
	status.ActiveEvacuatorCompleted = true
	status.EvacuationProgressTimestamp = &metav1.Time{Time: s.Now}
	status.Message = fmt.Sprintf("Pod %s belongs to no DaemonSet, evacuator %s has nothing to do.", s.Pod.Name, v1alpha1.DaemonSetEvacuatorClass)
	return Decision{Status: status}
}

// obstacle is why the pod does not leave now; empty if it does.
func obstacle(s Snapshot) string {
	if behavior, _ := podclass.DrainLabel(s.Pod); behavior != v1alpha1.DrainBehaviorDrain {
		return fmt.Sprintf("Pod %s is left alone, as its label %s=%s asks.", s.Pod.Name, v1alpha1.DrainLabel, s.Pod.Labels[v1alpha1.DrainLabel])
	}
	if s.Node == nil {
		return fmt.Sprintf("Node %s does not exist, so Kubernetes removes pod %s by itself.", s.Pod.Spec.NodeName, s.Pod.Name)
	}
	suppressed, err := cordon.Suppressed(s.Node)
	switch {
	case err != nil:
		return fmt.Sprintf("Pod %s stays as long as it is unknown what has to leave its node: %v", s.Pod.Name, err)
	case suppressed.Empty():
		return fmt.Sprintf("Pod %s waits for a NodeMaintenance that removes the DaemonSet pods of node %s: these leave with their node only.",
			s.Pod.Name, s.Node.Name)
	case !suppressed.Covers(s.Pod):
		return fmt.Sprintf("Pod %s waits until the NodeMaintenance of node %s has come to it. What leaves now: %s.",
			s.Pod.Name, s.Node.Name, suppressed.Key())
	}
	return ""
}

// wait says what it waits for. It neither completes nor reports progress (KEP-4212).
func wait(s Snapshot, why string) Decision {
	if s.Pod.DeletionTimestamp != nil {
		return Decision{}
	}
	status := told(s.Evacuation, why)
	if status != nil {
		status.ExpectedEvacuationFinishTime = nil
	}
	return Decision{Status: status}
}

// told is the status with a message; nil if it has that already. When our turn is
// over, because we have been silent for too long, the message is the Evacuation
// controller's.
func told(e *v1alpha1.Evacuation, message string) *v1alpha1.EvacuationStatus {
	if e.Status.Message == message || meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEvictionRefused) {
		return nil
	}
	status := e.Status.DeepCopy()
	status.Message = message
	return status
}

// remove announces the deletion once and deletes the pod. When a deletion that
// was refused before has succeeded, the message is put right.
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
		d.Status = told(s.Evacuation, message)
	}
	if d.Delete {
		d.Events = []event.Event{event.DaemonSetPodDeleted(s.Evacuation, message)}
	}
	return d
}

// announced returns true if the deletion is in the status. Only then a finish is
// expected: a turn begins without.
func announced(e *v1alpha1.Evacuation) bool { return e.Status.ExpectedEvacuationFinishTime != nil }

// message is the one of KEP-4212.
func message(s Snapshot) string {
	because := ""
	if reason := maintenance.Reason(s.Node, s.Maintenances); reason != "" {
		because = fmt.Sprintf(" (%s)", reason)
	}
	return fmt.Sprintf("%s is terminating the pod due to node maintenance%s.", podclass.Owner(s.Pod).Name, because)
}

// grace is how long the pod may take to terminate.
func grace(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// Refuse returns the status that tells of a deletion that the API server has
// refused, in its words; nil if the status says so already.
func Refuse(e *v1alpha1.Evacuation, refusal string) *v1alpha1.EvacuationStatus {
	return told(e, evacuation.Shorten(fmt.Sprintf("Deleting pod %s is refused and tried again: %s", e.Spec.PodRef.Name, refusal)))
}

// Return returns the status that tells of a pod that came to its node in the
// middle of the maintenance, like another one before, and is therefore not deleted
// at once; nil if the status says so already.
func Return(e *v1alpha1.Evacuation) *v1alpha1.EvacuationStatus {
	return told(e, fmt.Sprintf("Pod %s came back to its node during the maintenance and is deleted again in a while. "+
		"If that goes on, see why policy ebbtide-daemonset-pods, before Kubernetes 1.36 webhook daemonset-pods.ebbtide.dev, does not hold it back.", e.Spec.PodRef.Name))
}
