package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// draining is a maintenance in Drain for which the test is the controller.
type draining struct {
	t *testing.T
	c *cluster.Cluster
	*v1alpha1.NodeMaintenance
}

func newDraining(t *testing.T, c *cluster.Cluster, name string) *draining {
	t.Helper()
	created := object(t, maintenance(name, anyNode+"\nstage: Drain"))
	keep(t, c.Client, created)
	d := &draining{t, c, &v1alpha1.NodeMaintenance{}}
	d.Name = name
	return d
}

// becomes writes its status.
func (d *draining) becomes(condition, reason string, nodes ...v1alpha1.NodeMaintenanceNodeStatus) {
	d.t.Helper()
	if err := d.c.Client.Get(d.t.Context(), keyOf(d.Name), d.NodeMaintenance); err != nil {
		d.t.Fatal(err)
	}
	d.Status = v1alpha1.NodeMaintenanceStatus{NodeCount: int32(len(nodes)), NodeStatuses: nodes, StageStatuses: d.Status.StageStatuses}
	if len(d.Status.StageStatuses) == 0 {
		now := metav1.Now()
		d.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageDrain, StartTimestamp: &now}}
	}
	if condition != "" {
		d.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now()}}
	}
	if err := d.c.Client.Status().Update(d.t.Context(), d.NodeMaintenance); err != nil {
		d.t.Fatal(err)
	}
}

// has is a node with pods that leave, and what holds them up.
func has(name string, pods int32, blockers ...v1alpha1.Blocker) v1alpha1.NodeMaintenanceNodeStatus {
	said := v1alpha1.NodeMaintenanceNodeStatus{NodeRef: v1alpha1.NodeReference{Name: name}, PodsEvacuating: pods, State: v1alpha1.NodeStateDraining, DrainMessage: "Evacuating", Blockers: blockers}
	if pods == 0 {
		said.State, said.DrainMessage = v1alpha1.NodeStateDrained, "Drained."
	}
	return said
}

// webIsUsedUp is a budget that holds one pod up.
func webIsUsedUp() v1alpha1.Blocker {
	return v1alpha1.Blocker{
		Type: v1alpha1.BlockerPDBExhausted, PodCount: 1, Message: "The disruption budget web needs 2 healthy pods and has 2 currently.", Suggestion: "Wait.",
		Object: v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "web"},
	}
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
