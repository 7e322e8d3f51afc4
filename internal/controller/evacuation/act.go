package evacuation

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/kube"
)

// act does what was decided, and returns when to look again; 0 is never.
func (r *reconciler) act(ctx context.Context, seen *observed, decision core.Decision) (time.Duration, error) {
	if decision.Evict {
		return r.evict(ctx, seen, decision)
	}
	r.wake(r.room.forget(client.ObjectKeyFromObject(seen.Evacuation))...)
	if err := r.cleanUp(ctx, seen.Evacuation, decision); err != nil {
		return 0, err
	}
	if decision.Status == nil {
		r.emit(decision.Events...)
	}
	return 0, nil
}

// evict asks the API server once, if the pod's budget has a turn for it.
func (r *reconciler) evict(ctx context.Context, seen *observed, decision core.Decision) (time.Duration, error) {
	key := client.ObjectKeyFromObject(seen.Evacuation)
	mayTry, wait, next := r.room.enter(visit{key: key, born: seen.Pod.CreationTimestamp.Time, budget: seen.budget}, r.clock.Now())
	r.wake(next...)
	if !mayTry {
		return wait, nil
	}
	slow := r.clock.AfterFunc(slowTry, func() { r.wake(r.room.slow(key)...) })
	answer := r.evictor.Evict(ctx, seen.Pod, nil)
	slow.Stop()
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("evict pod %s: %w", seen.Pod.Name, err)
	}
	outcome := core.Classify(answer)
	r.metrics.evictions.WithLabelValues(string(outcome.Result)).Inc()
	r.wake(r.room.leave(key, outcome, r.clock.Now())...)

	logger := log.FromContext(ctx).WithValues("pod", seen.Pod.Name, "node", seen.Pod.Spec.NodeName)
	if outcome.Result == core.Evicted {
		logger.Info("Evicted a pod")
		r.emit(decision.Events...)
	} else {
		logger.V(1).Info("The eviction of a pod was refused", "result", outcome.Result, "message", outcome.Message)
	}
	return r.room.wait(key, r.clock.Now()), nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=patch;delete

// cleanUp lets go of the object and deletes it. The finalizers of others hold
// it for as long as they like.
func (r *reconciler) cleanUp(ctx context.Context, e *v1alpha1.Evacuation, decision core.Decision) error {
	precondition := client.Preconditions{UID: &e.UID}
	if decision.State == core.StateCancelled {
		// An instigator that comes at the last moment wins.
		precondition.ResourceVersion = &e.ResourceVersion
	}
	if _, err := kube.RemoveFinalizer(ctx, r.client, e, decision.DropFinalizers...); err != nil {
		return fmt.Errorf("drop the finalizers of instigators: %w", err)
	}
	if !decision.Delete {
		return nil
	}
	if err := r.client.Delete(ctx, e, precondition); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete: %w", err)
	}
	log.FromContext(ctx).Info("Deleted an evacuation", "because", decision.Message)
	return nil
}
