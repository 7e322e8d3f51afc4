package nodemaintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// record is one maintenance in a pass.
type record struct {
	*maintenance.MaintenanceDecision
	// stored is the object as it was read or last written.
	stored *v1alpha1.NodeMaintenance
	// failed is true if the record could not be written: its nodes are left alone and its status is
	// not reported.
	failed bool
	// ended is true if this pass has completed it because its node is back, or has given nodes back:
	// nothing more is done to its nodes.
	ended      bool
	unfinished atomic.Bool // one of its nodes could not be acted on
	reported   bool        // the status is in the API
}

// records holds all maintenances of a pass, by name.
type records map[string]*record

// of returns those of the named maintenances that exist.
func (r records) of(names []string) []*record {
	found := make([]*record, 0, len(names))
	for _, name := range names {
		if named, ok := r[name]; ok {
			found = append(found, named)
		}
	}
	return found
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=patch

// record writes what must be in the API before nodes are touched.
func (w *writer) record(ctx context.Context, decisions []maintenance.MaintenanceDecision) records {
	all := make(records, len(decisions))
	for i := range decisions {
		one := &record{MaintenanceDecision: &decisions[i], stored: decisions[i].Maintenance}
		all[one.stored.Name] = one
	}
	kube.Parallel(w.workers, len(decisions), func(i int) {
		one := all[decisions[i].Maintenance.Name]
		if one.AddFinalizer || one.HandOver != nil || one.GiveBack != nil || one.Complete || one.Record {
			one.failed = !w.changeMaintenance(one, "record", func() error { return w.recordOne(ctx, one) })
		}
	})
	return all
}

// changeMaintenance makes writes that belong to a maintenance. Its status cannot report a refusal,
// because it may be the status that is refused.
func (w *writer) changeMaintenance(one *record, verb string, request func() error) bool {
	return w.write(group.Maintenance(one.stored.Name), maintenance.Write{Kind: writeMaintenance}, func() error {
		err := request()
		if err == nil {
			return nil
		}
		if !stale(err) {
			w.emit(event.MaintenanceRefused(one.stored, err))
		}
		return fmt.Errorf("%s maintenance %s: %w", verb, one.stored.Name, err)
	})
}

func (w *writer) recordOne(ctx context.Context, one *record) error {
	if one.AddFinalizer {
		stored, err := kube.AddFinalizer(ctx, w.client, one.stored, v1alpha1.MaintenanceCompletionFinalizer)
		if err != nil {
			return fmt.Errorf("add the finalizer: %w", err)
		}
		one.stored = stored
	}
	if one.HandOver != nil {
		if err := w.handOver(ctx, one); err != nil {
			return fmt.Errorf("record the hand-over: %w", err)
		}
	}
	if one.GiveBack != nil {
		return w.giveBack(ctx, one)
	}
	if one.Returned {
		if err := w.writeStatus(ctx, one); err != nil {
			return err
		}
	}
	if one.Complete {
		if err := w.complete(ctx, one); err != nil {
			return fmt.Errorf("set stage Complete: %w", err)
		}
	}
	if !one.Record {
		return nil
	}
	if maintenance.Stage(one.stored) == v1alpha1.StageComplete {
		// The finalizer goes when its end is in the API. The event of a status write is dropped.
		w.wait(coalesce)
	}
	return w.writeStatus(ctx, one)
}

// handOver records the state of the node while it is handed over.
func (w *writer) handOver(ctx context.Context, one *record) error {
	changed, err := kube.Annotate(ctx, w.client, one.stored, v1alpha1.HandedOverAnnotation, *one.HandOver)
	if err != nil {
		return err
	}
	log.FromContext(ctx).V(1).Info("Recorded the hand-over of a node", "maintenance", changed.Name, "record", *one.HandOver)
	one.stored = changed
	return nil
}

func (w *writer) complete(ctx context.Context, one *record) error {
	completed := one.stored.DeepCopy()
	completed.Spec.Stage = v1alpha1.StageComplete
	if err := w.client.Patch(ctx, completed, kube.Change(one.stored)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Completed a maintenance", "maintenance", one.stored.Name, "returned", one.Returned)
	one.stored, one.ended = completed, one.Returned
	w.emit(one.CompleteEvents...)
	return nil
}

// giveBack gives back nodes that were late. If the deadline was postponed meanwhile, the object has
// another version, and nothing is given back. The next pass does the rest.
func (w *writer) giveBack(ctx context.Context, one *record) error {
	changed := one.stored.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.GivenBackAnnotation, one.GiveBack.Record)
	changed.Spec.CompletedNodes = append(changed.Spec.CompletedNodes, one.GiveBack.Nodes...)
	if len(one.GiveBack.Nodes) == 0 {
		changed.Spec.Stage = v1alpha1.StageComplete
	}
	if err := w.client.Patch(ctx, changed, kube.Change(one.stored)); err != nil {
		return fmt.Errorf("give nodes back: %w", err)
	}
	log.FromContext(ctx).Info("Gave back nodes that were not drained", "reason", "deadline",
		"maintenance", changed.Name, "record", one.GiveBack.Record)
	one.stored, one.ended, one.reported = changed, true, true
	w.emit(one.GiveBack.Events...)
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances/status,verbs=update

// writeStatus writes the decided status if it differs from the stored one, under the resource version
// of the object that it was decided on, and then publishes its events.
func (w *writer) writeStatus(ctx context.Context, one *record) error {
	one.reported = true
	if equality.Semantic.DeepEqual(one.stored.Status, one.Status) {
		return nil
	}
	written := one.stored.DeepCopy()
	one.Status.DeepCopyInto(&written.Status)
	if err := w.client.Status().Update(ctx, written); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	one.stored = written
	text, _ := json.Marshal(written.Status)
	w.statusPace.wrote(written.Name, w.clock.Now(), len(text))
	w.emit(one.Events...)
	return nil
}
