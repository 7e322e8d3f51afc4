package nodemaintenance

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords,verbs=create;patch

// writeRecord has the DrainRecord of a node say what its drain needs; a node that
// is never away needs none. The drain lock controller takes and gives the locks.
func (r *reconciler) writeRecord(ctx context.Context, node *maintenance.NodeDecision) error {
	change := node.Record
	if change == nil {
		return nil
	}
	written := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: node.Node.Name}}
	var err error
	if change.Old == nil {
		change.Spec.DeepCopyInto(&written.Spec)
		err = r.client.Create(ctx, written)
	} else {
		written = change.Old.DeepCopy()
		written.Spec = v1alpha1.DrainRecordSpec{}
		change.Spec.DeepCopyInto(&written.Spec)
		err = r.client.Patch(ctx, written, kube.Change(change.Old))
	}
	if err != nil {
		return fmt.Errorf("write the DrainRecord of node %s: %w", node.Node.Name, err)
	}
	log.FromContext(ctx).Info("Wrote what the drain of a node needs", "node", node.Node.Name,
		"pods", len(change.Spec.Pods), "budgets", len(change.Spec.Budgets), "complete", change.Spec.Complete)
	return nil
}

// drainRecords finds DrainRecords by their node.
func drainRecords(all []*v1alpha1.DrainRecord) map[string]*v1alpha1.DrainRecord {
	byNode := make(map[string]*v1alpha1.DrainRecord, len(all))
	for _, one := range all {
		byNode[one.Name] = one
	}
	return byNode
}

// withRecords adds the nodes that have a DrainRecord, though no maintenance may
// select them any more, or though they may be gone.
func withRecords(nodes sets.Set[string], all map[string]*v1alpha1.DrainRecord) sets.Set[string] {
	for name := range all {
		nodes.Insert(name)
	}
	return nodes
}

// recordMatters drops what no decision reads of a DrainRecord.
func recordMatters(old, now *v1alpha1.DrainRecord) (time.Duration, bool) {
	if old == nil || now == nil {
		return coalesce, true
	}
	changed := old.UID != now.UID || old.Generation != now.Generation ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(old.Status, now.Status)
	return coalesce, changed
}

// budgetMatters hurries when the budgets of pods that stay may be others. What
// budgets allow only changes what our status says: the drain lock controller
// watches it as well, and what it concludes comes with its DrainRecord.
func (r *reconciler) budgetMatters(old, now *policyv1.PodDisruptionBudget) (time.Duration, bool) {
	if r.inPlace.Load() && (old == nil || now == nil || old.Generation != now.Generation) {
		return coalesce, true
	}
	return statusInterval, r.draining()
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
