package surge

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// maxMoves bounds the moves of one Deployment at the same time.
const maxMoves = 16

// act makes every move. A move that fails or hangs holds up no other; one that was
// decided on old state is decided again, because the newer state is an event.
func (r *reconciler) act(ctx context.Context, it item, decision core.Decision) error {
	r.written.Note(it, podsOfMoves(decision.Moves))
	failed := make([]error, len(decision.Moves))
	kube.Parallel(maxMoves, len(decision.Moves), func(i int) {
		failed[i] = kube.WithoutStale(ctx, r.move(ctx, decision.Moves[i]))
	})
	return errors.Join(failed...)
}

// podsOfMoves returns the pods that moves write.
func podsOfMoves(moves []core.Move) []client.Object {
	var pods []client.Object
	for _, move := range moves {
		for i := range move {
			if pod := move[i].Pod; pod != nil {
				pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
			}
		}
	}
	return pods
}

// move does the writes of one move in their order, up to the first that fails.
func (r *reconciler) move(ctx context.Context, move core.Move) error {
	for i := range move {
		if err := r.write(ctx, &move[i]); err != nil {
			return err
		}
		r.tell(ctx, &move[i])
	}
	return nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=patch;delete

func (r *reconciler) write(ctx context.Context, w *core.Write) error {
	switch {
	case w.Evacuation != nil:
		if _, err := kube.WriteEvacuationStatus(ctx, r.client, w.Evacuation, *w.Status); err != nil {
			return err
		}
	case w.Changed != nil:
		if err := r.client.Patch(ctx, w.Changed.DeepCopy(), kube.Change(w.Pod)); err != nil {
			return fmt.Errorf("change pod %s: %w", w.Pod.Name, err)
		}
	default:
		if err := r.client.Delete(ctx, w.Pod.DeepCopy(), client.Preconditions{UID: &w.Pod.UID}); err != nil {
			return fmt.Errorf("delete pod %s: %w", w.Pod.Name, err)
		}
	}
	return nil
}

// tell makes a write known that has succeeded.
func (r *reconciler) tell(ctx context.Context, w *core.Write) {
	logger := log.FromContext(ctx).WithValues("message", w.Message)
	switch {
	case w.Evacuation != nil:
		logger.Info("Reported on an evacuation", "pod", w.Evacuation.Spec.PodRef.Name)
	case w.Changed != nil:
		logger.Info("Changed the labels or annotations of a pod", "pod", w.Pod.Name, "node", w.Pod.Spec.NodeName)
	default:
		logger.Info("Deleted a pod", "pod", w.Pod.Name, "node", w.Pod.Spec.NodeName)
	}
	if w.Result != "" {
		r.metrics.surges.WithLabelValues(string(w.Result)).Inc()
	}
	r.emit(w.Events...)
}
