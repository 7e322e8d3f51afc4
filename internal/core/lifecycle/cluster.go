package lifecycle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// namedMachines is how many Machines a message names.
const namedMachines = 3

// ClusterSnapshot is everything that a decision on a Cluster reads. It is never
// changed by DecideCluster.
type ClusterSnapshot struct {
	// Cluster is the object.
	Cluster *v1alpha1.Cluster
	// Machines are those of the Cluster, in any order.
	Machines []*v1alpha1.Machine
	// Reachable is what the connection says of the cluster, with the time since
	// when it does.
	Reachable metav1.Condition
	// HoldOff is for how long the connection leaves the cluster alone.
	HoldOff *v1alpha1.ClusterHoldOff
}

// ClusterDecision is what becomes of a Cluster. Nothing of its Machines: who
// deletes a Cluster also has to delete those.
type ClusterDecision struct {
	// AddFinalizer holds the Cluster while it has Machines.
	AddFinalizer bool
	// DropFinalizer lets it go, unless a Machine has come that was not read yet.
	DropFinalizer bool
	// Status is the complete status.
	Status v1alpha1.ClusterStatus
}

// DecideCluster decides whether a Cluster is held and what is told of it.
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

// holdOff is what the status remembers. A connection that nobody uses, as after a
// restart, knows nothing of it, so that it stays until there is one or the spec is
// another one.
func holdOff(s ClusterSnapshot) *v1alpha1.ClusterHoldOff {
	unused := s.Reachable.Reason == v1alpha1.ReasonNotInUse
	if s.HoldOff == nil && unused && s.Cluster.Status.ObservedGeneration == s.Cluster.Generation {
		return s.Cluster.Status.HoldOff
	}
	return s.HoldOff
}

// machinesLeft says which Machines hold a Cluster, and what to do about them.
func machinesLeft(machines []*v1alpha1.Machine) string {
	var all, kept []string
	for _, machine := range machines {
		all = append(all, machine.Name)
		if machine.DeletionTimestamp == nil {
			kept = append(kept, machine.Name)
		}
	}
	text := fmt.Sprintf("The Cluster goes when its Machines are gone: %s.", nodedrain.List(all, namedMachines))
	if len(kept) == 0 {
		return text + " All of them are being deleted; their condition Deleting says what each waits for."
	}
	return fmt.Sprintf("%s Delete those that nobody has deleted yet: %s.", text, nodedrain.List(kept, namedMachines))
}
