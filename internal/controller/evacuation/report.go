package evacuation

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=patch

// record writes what has to be in the API before anything else happens. It
// reports whether to go on: after a change of the spec everything is decided again.
func (r *reconciler) record(ctx context.Context, seen *core.Snapshot, decision core.Decision) (goOn bool, err error) {
	if decision.Evacuators != nil {
		changed := seen.Evacuation.DeepCopy()
		core.Complete(changed, seen.Pod, decision.Evacuators)
		if err := r.client.Patch(ctx, changed, kube.Change(seen.Evacuation)); err != nil {
			return false, fmt.Errorf("record the evacuators: %w", err)
		}
		return false, nil
	}
	if decision.Status == nil {
		return true, nil
	}
	if seen.Evacuation, err = kube.WriteEvacuationStatus(ctx, r.client, seen.Evacuation, *decision.Status); err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("Recorded a change", "state", decision.State, "message", decision.Message)
	r.emit(decision.Events...)
	return true, nil
}

// report tells where the evacuation stands and of refusals that have lasted. It
// returns when the next report is due; 0 is never.
func (r *reconciler) report(ctx context.Context, seen *core.Snapshot, decision core.Decision) (time.Duration, error) {
	key := client.ObjectKeyFromObject(seen.Evacuation)
	r.metrics.counts(key, seen.Evacuation.Status.ActiveEvacuatorClass, decision.State)
	refusal, due := r.evictions.Unreported(key, seen.Evacuation.Status)
	if refusal == nil {
		return 0, nil
	}
	now := r.clock.Now()
	if wait := due.Sub(now); wait > 0 {
		return wait, nil
	}
	if _, err := kube.WriteEvacuationStatus(ctx, r.client, seen.Evacuation, core.Refuse(seen.Evacuation.Status, *refusal, now)); err != nil {
		return 0, err
	}
	r.evictions.Wrote(key, *refusal, now)
	return 0, nil
}
