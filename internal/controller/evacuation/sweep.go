package evacuation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/kube"
)

// deleter deletes objects by their labels.
type deleter interface {
	DeleteAllOf(ctx context.Context, object client.Object, options ...client.DeleteAllOfOption) error
}

// finish releases an evacuation whose pod is gone and marks it, in one write. It is
// deleted with all others that are marked; a new controller finds it by its mark.
func (r *reconciler) finish(ctx context.Context, e *v1alpha1.Evacuation, decision core.Decision) error {
	finished := core.Finished(e, decision.DropFinalizers)
	if !equality.Semantic.DeepEqual(finished.ObjectMeta, e.ObjectMeta) {
		if err := r.client.Patch(ctx, finished, kube.Change(e)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("drop the finalizers of instigators: %w", err)
		}
		log.FromContext(ctx).Info("Let go of an evacuation", "because", decision.Message)
	}
	r.sweepLater(e.Namespace, sweepDelay)
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=deletecollection

// sweep deletes the complete evacuations of a namespace by one request. What somebody
// else has marked is decided here, too, and if it is not complete nothing is deleted
// by the mark.
func (r *reconciler) sweep(ctx context.Context, namespace string) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	marked := client.MatchingLabels{v1alpha1.CompleteLabel: "true"}
	complete, all, err := r.complete(ctx, namespace, marked)
	if err != nil || len(complete) == 0 {
		return reconcile.Result{}, err
	}
	together := all && len(complete) > 1
	if together {
		err = r.bulk.DeleteAllOf(ctx, &v1alpha1.Evacuation{}, client.InNamespace(namespace), marked)
	}
	// Who has given us an older role need not wait for a newer one.
	if !together || apierrors.IsForbidden(err) {
		err = r.deleteEach(ctx, complete)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("delete complete evacuations: %w", err)
	}
	log.FromContext(ctx).Info("Deleted evacuations", "namespace", namespace, "count", len(complete))
	return reconcile.Result{}, nil
}

// complete finds the marked evacuations that nobody has deleted yet and whose pods
// are gone, and reports whether these are all of them.
func (r *reconciler) complete(ctx context.Context, namespace string, marked client.MatchingLabels) (complete []*v1alpha1.Evacuation, all bool, err error) {
	list := &v1alpha1.EvacuationList{}
	// One whose mark the cache does not show yet has a sweep of its own when it does.
	if err := r.client.List(ctx, list, client.InNamespace(namespace), marked, client.DisableReadYourWritesConsistency); err != nil {
		return nil, false, fmt.Errorf("list complete evacuations: %w", err)
	}
	all = true
	for i := range list.Items {
		e := &list.Items[i]
		if e.DeletionTimestamp != nil {
			continue
		}
		pod, err := r.pod(ctx, e)
		if err != nil {
			return nil, false, err
		}
		// Whether a pod is gone is no question of the time.
		if core.Decide(core.Snapshot{Evacuation: e, Pod: pod}).State == core.StateDone {
			complete = append(complete, e)
		} else {
			all = false
		}
	}
	return complete, all, nil
}

func (r *reconciler) deleteEach(ctx context.Context, complete []*v1alpha1.Evacuation) error {
	for _, e := range complete {
		if err := r.client.Delete(ctx, e, client.Preconditions{UID: &e.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
