package uninstall

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/certificate"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

// inherit makes the ServiceAccount of the managers own their objects and the creation guard, so that they
// are deleted with it. Running managers would recreate them, and Helm deletes the account last.
func (h Hook) inherit(ctx context.Context) error {
	account := metadataOf("ServiceAccount", metav1.ObjectMeta{Namespace: h.Namespace, Name: h.ServiceAccount})
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
		return fmt.Errorf("get the ServiceAccount of the managers: %w", err)
	}
	owner := metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ServiceAccount", Name: account.Name, UID: account.UID}
	lease := func(name string) client.Object {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}
		object.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		return object
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: h.Namespace, Name: name} }
	for _, object := range []client.Object{
		lease(kube.LeaderLease), lease(v1alpha1.DrainLockMutex), metadataOf("ConfigMap", meta(guardName)),
		metadataOf("Secret", meta(certificate.SecretName)), metadataOf("Secret", meta(certificate.EarlierSecretName)),
	} {
		if err := h.bequeath(ctx, object, owner); err != nil {
			return fmt.Errorf("set the owner of %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
	}
	if err := h.inheritRequests(ctx); err != nil {
		return err
	}
	fmt.Fprintf(h.Out, "The objects of the managers in namespace %s will be deleted with ServiceAccount %s.\n", h.Namespace, h.ServiceAccount)
	return nil
}

// requestRole is the Role for the Lease of EvictionRequests, in whose namespace the ServiceAccount cannot
// own objects.
const requestRole = "ebbtide-eviction-requests"

// inheritRequests makes the Role own the Lease of EvictionRequests, or deletes the Lease if the Role is
// gone.
func (h Hook) inheritRequests(ctx context.Context) error {
	role := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: evictionrequest.LeaseNamespace, Name: requestRole}}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
	err := h.Client.Get(ctx, client.ObjectKeyFromObject(role), role)
	switch {
	case apierrors.IsNotFound(err):
		err = client.IgnoreNotFound(h.Client.Delete(ctx, requestLease()))
	case err == nil:
		owner := metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role", Name: role.Name, UID: role.UID}
		err = h.bequeath(ctx, requestLease(), owner)
	}
	if err != nil {
		return fmt.Errorf("set the owner of Lease %s/%s to Role %s: %w", evictionrequest.LeaseNamespace, evictionrequest.Lease, requestRole, err)
	}
	return nil
}

// bequeath sets the owner of an object if it exists and is not Helm's. Conflicts are retried, as the leader
// renews its Lease every two seconds.
func (h Hook) bequeath(ctx context.Context, object client.Object, owner metav1.OwnerReference) error {
	for n := 0; ; n++ {
		err := h.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err != nil || !notHelms(object) {
			return client.IgnoreNotFound(err)
		}
		for _, known := range object.GetOwnerReferences() {
			if known.UID == owner.UID {
				return nil
			}
		}
		owned, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return nil
		}
		owned.SetOwnerReferences(append(owned.GetOwnerReferences(), owner))
		if err := h.Client.Patch(ctx, owned, kube.Change(object)); !apierrors.IsConflict(err) || n >= attempts {
			return client.IgnoreNotFound(err)
		}
	}
}
