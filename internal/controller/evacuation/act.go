package evacuation

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// act does what was decided, and returns when to look again; 0 is never.
func (r *reconciler) act(ctx context.Context, seen *core.Snapshot, decision core.Decision) (time.Duration, error) {
	if decision.Evict {
		return r.evict(ctx, seen, decision)
	}
	r.evictions.Forget(client.ObjectKeyFromObject(seen.Evacuation))
	if err := r.cleanUp(ctx, seen.Evacuation, decision); err != nil {
		return 0, err
	}
	if decision.Status == nil {
		r.emit(decision.Events...)
	}
	return 0, nil
}

// evict asks the API server once, if the pod's budget has a turn for it.
func (r *reconciler) evict(ctx context.Context, seen *core.Snapshot, decision core.Decision) (time.Duration, error) {
	answer, err := r.evictions.Evict(ctx, client.ObjectKeyFromObject(seen.Evacuation), seen.Pod, eviction.Grace(ctx, r.client, seen.Pod))
	if answer.Outcome != nil && answer.Outcome.Result == core.Evicted {
		r.emit(decision.Events...)
	}
	return answer.Again, err
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=patch;delete

// cleanUp releases the object and has it deleted. The finalizers of others hold
// it for as long as they like.
func (r *reconciler) cleanUp(ctx context.Context, e *v1alpha1.Evacuation, decision core.Decision) error {
	if decision.State == core.StateDone && decision.Delete {
		return r.finish(ctx, e, decision)
	}
	if _, err := kube.RemoveFinalizer(ctx, r.client, e, decision.DropFinalizers...); err != nil {
		return fmt.Errorf("drop the finalizers of instigators: %w", err)
	}
	if !decision.Delete {
		return nil
	}
	// An instigator that comes at the last moment wins.
	asDecided := client.Preconditions{UID: &e.UID, ResourceVersion: &e.ResourceVersion}
	if err := r.client.Delete(ctx, e, asDecided); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete: %w", err)
	}
	log.FromContext(ctx).Info("Deleted an evacuation", "because", decision.Message)
	return nil
}
