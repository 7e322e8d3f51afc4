package nodemaintenance

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords,verbs=create;patch

// writeDrainRecord has the DrainRecord of a node say what its drain needs; a node that
// is never away needs none. The drain lock controller takes and gives the locks.
func (a *action) writeDrainRecord(ctx context.Context, node *actionNode) {
	change := node.DrainRecord
	if change == nil {
		return
	}
	write := maintenance.Write{Kind: maintenance.WriteDrainRecord, Node: node.Node.Name}
	made := a.changeNode(node, write, func() error {
		if change.Old == nil {
			created := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: node.Node.Name}}
			change.Spec.DeepCopyInto(&created.Spec)
			return a.client.Create(ctx, created)
		}
		written := change.Old.DeepCopy()
		written.Spec = v1alpha1.DrainRecordSpec{}
		change.Spec.DeepCopyInto(&written.Spec)
		if !change.Spec.Complete && (change.Old.Spec.Complete || change.Old.Spec.MaintenanceRef != change.Spec.MaintenanceRef) {
			// Somebody's word was about the maintenance before.
			delete(written.Annotations, v1alpha1.BackAnnotation)
		}
		return a.client.Patch(ctx, written, kube.Change(change.Old))
	})
	if made {
		log.FromContext(ctx).Info("Wrote what the drain of a node needs", "node", node.Node.Name,
			"pods", len(change.Spec.Pods), "budgets", len(change.Spec.Budgets), "complete", change.Spec.Complete)
	}
}

// anyInPlace returns true if pods may stay somewhere.
func anyInPlace(maintenances []*v1alpha1.NodeMaintenance) bool {
	for _, m := range maintenances {
		if m.Spec.InPlace != nil && m.Spec.Stage == v1alpha1.StageDrain {
			return true
		}
	}
	return false
}
