package lifecycle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

const namedMachines = 3

// ClusterSnapshot is everything that a decision on a Cluster reads.
type ClusterSnapshot struct {
	Cluster   *v1alpha1.Cluster
	Machines  []*v1alpha1.Machine
	Reachable metav1.Condition
	HoldOff   *v1alpha1.ClusterHoldOff
}

// ClusterDecision is the decision about a Cluster. Its Machines must be deleted separately.
type ClusterDecision struct {
	AddFinalizer bool
	// DropFinalizer removes the finalizer unless a Machine was created meanwhile.
	DropFinalizer bool
	Status        v1alpha1.ClusterStatus
}

// DecideCluster decides about the finalizer and the status of a Cluster.
func DecideCluster(s ClusterSnapshot) ClusterDecision {
	deleting := s.Cluster.DeletionTimestamp != nil
	held := slices.Contains(s.Cluster.Finalizers, v1alpha1.ClusterFinalizer)
	d := ClusterDecision{
		AddFinalizer:  !deleting && !held,
		DropFinalizer: deleting && held && len(s.Machines) == 0,
		Status:        *s.Cluster.Status.DeepCopy(),
	}
	d.Status.HoldOff = holdOff(s)
	d.Status.ObservedGeneration = s.Cluster.Generation
	if slices.ContainsFunc(s.Machines, InControlPlane) {
		d.Status.ControlPlaneMachinesSeen = true
	}
	reachable := s.Reachable
	reachable.Type = v1alpha1.ConditionReachable
	conditions := []metav1.Condition{reachable}
	meta.RemoveStatusCondition(&d.Status.Conditions, v1alpha1.ConditionDeleting)
	if deleting && len(s.Machines) > 0 {
		conditions = append(conditions, metav1.Condition{
			Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonMachinesLeft, Message: machinesLeft(s.Machines),
			LastTransitionTime: metav1.NewTime(s.Cluster.DeletionTimestamp.Time),
		})
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = s.Cluster.Generation
		meta.SetStatusCondition(&d.Status.Conditions, condition)
	}
	return d
}

// holdOff returns the pause to record. The recorded one stays while the connection is not in use.
func holdOff(s ClusterSnapshot) *v1alpha1.ClusterHoldOff {
	unused := s.Reachable.Reason == v1alpha1.ReasonNotInUse
	if s.HoldOff == nil && unused && s.Cluster.Status.ObservedGeneration == s.Cluster.Generation {
		return s.Cluster.Status.HoldOff
	}
	return s.HoldOff
}

func machinesLeft(machines []*v1alpha1.Machine) string {
	var all, kept []string
	for _, machine := range machines {
		all = append(all, machine.Name)
		if machine.DeletionTimestamp == nil {
			kept = append(kept, machine.Name)
		}
	}
	text := fmt.Sprintf("Waiting for Machines to be deleted: %s.", nodedrain.List(all, namedMachines))
	if len(kept) == 0 {
		return text + " To see their progress: kubectl get machines.ebbtide.dev"
	}
	return fmt.Sprintf("%s Delete these: %s.", text, nodedrain.List(kept, namedMachines))
}
