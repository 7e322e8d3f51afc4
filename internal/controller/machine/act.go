package machine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
)

// act carries out a decision. A failure only blocks what depends on it.
func (r *reconciler) act(ctx context.Context, seen *observed, decision *lifecycle.Decision) error {
	return utilerrors.NewAggregate([]error{
		r.adopt(ctx, seen, seen.bootstrap, decision.AdoptBootstrap),
		r.adopt(ctx, seen, seen.infrastructure, decision.AdoptInfrastructure),
		r.drain(ctx, seen, decision),
		r.remove(ctx, seen, seen.infrastructure, decision.DeleteInfrastructure),
		r.remove(ctx, seen, seen.bootstrap, decision.DeleteBootstrap),
		r.removeNode(ctx, seen, decision),
	})
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=machines/finalizers,verbs=update

func (r *reconciler) adopt(ctx context.Context, seen *observed, object *unstructured.Unstructured, wanted bool) error {
	if !wanted {
		return nil
	}
	adopted, uid := object.DeepCopy(), seen.Machine.UID
	others := slices.DeleteFunc(adopted.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == uid })
	adopted.SetOwnerReferences(append(others,
		*metav1.NewControllerRef(seen.Machine, v1alpha1.SchemeGroupVersion.WithKind("Machine"))))
	return r.ofKind(seen, object.GroupVersionKind(), func() error {
		if err := r.client.Patch(ctx, adopted, kube.Change(object)); err != nil {
			return fmt.Errorf("adopt %s: %w", title(object), err)
		}
		log.FromContext(ctx).Info("Adopted an object", "object", title(object))
		return nil
	})
}

// remove deletes exactly the observed object: a successor, or one that another owner now controls,
// stays.
func (r *reconciler) remove(ctx context.Context, seen *observed, object *unstructured.Unstructured, wanted bool) error {
	if !wanted {
		return nil
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	return r.ofKind(seen, object.GroupVersionKind(), func() error {
		if err := r.client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
			return fmt.Errorf("delete %s: %w", title(object), err)
		}
		log.FromContext(ctx).Info("Deleted an object", "object", title(object), "reason", "its Machine is being deleted")
		return nil
	})
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=patch;delete

func (r *reconciler) removeNode(ctx context.Context, seen *observed, decision *lifecycle.Decision) error {
	node := decision.DeleteNode
	if node == nil {
		return nil
	}
	if err := seen.connection.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID}); err != nil {
		return fmt.Errorf("delete node %s: %w", node.Name, err)
	}
	log.FromContext(ctx).Info("Deleted Node", "Node", node.Name, "reason", "its Machine is being deleted")
	return nil
}

func title(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}
