package nodemaintenance

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/drainrecord"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords,verbs=create;patch

// writeDrainRecord writes the DrainRecord of a node. The drain lock controller takes and releases the
// locks.
func (a *action) writeDrainRecord(ctx context.Context, node *actionNode) {
	wanted := node.DrainRecord
	if wanted == nil {
		return
	}
	name := node.Node.Name
	a.changeNode(ctx, node, change{Write: maintenance.Write{Kind: maintenance.WriteDrainRecord, Node: name}, request: func() error {
		if err := a.storeDrainRecord(ctx, name, wanted); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Wrote a DrainRecord", "node", name,
			"pods", len(wanted.Spec.Pods), "budgets", len(wanted.Spec.Budgets), "complete", wanted.Spec.Complete)
		return nil
	}})
}

func (r *reconciler) storeDrainRecord(ctx context.Context, node string, wanted *drainrecord.Change) error {
	if wanted.Old == nil {
		created := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: node}}
		wanted.Spec.DeepCopyInto(&created.Spec)
		return r.client.Create(ctx, created)
	}
	written := wanted.Old.DeepCopy()
	written.Spec = v1alpha1.DrainRecordSpec{}
	wanted.Spec.DeepCopyInto(&written.Spec)
	if !wanted.Spec.Complete && (wanted.Old.Spec.Complete || wanted.Old.Spec.MaintenanceRef != wanted.Spec.MaintenanceRef) {
		// The annotation was about the maintenance before.
		delete(written.Annotations, v1alpha1.BackAnnotation)
	}
	return r.client.Patch(ctx, written, kube.Change(wanted.Old))
}

// anyInPlace returns true if pods may stay on a node.
func anyInPlace(maintenances []*v1alpha1.NodeMaintenance) bool {
	return slices.ContainsFunc(maintenances, func(m *v1alpha1.NodeMaintenance) bool {
		return m.Spec.InPlace != nil && m.Spec.Stage == v1alpha1.StageDrain
	})
}
