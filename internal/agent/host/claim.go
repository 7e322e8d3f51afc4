package host

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ClaimName is the Lease whose holder alone may take its part of the control plane down.
	ClaimName = "ebbtide-control-plane"
	// identity is the label that API servers give to the Lease that tells that they run.
	identity, apiServer = "apiserver.kubernetes.io/identity", "kube-apiserver"
)

// Of selects Leases of API servers, in kube-system.
func Of() labels.Selector { return labels.SelectorFromSet(labels.Set{identity: apiServer}) }

// Members selects pods of etcd, in kube-system.
func Members() labels.Selector { return labels.SelectorFromSet(labels.Set{"component": "etcd"}) }

// Seen is the control plane as the API shows it.
type Seen struct {
	Servers []*coordinationv1.Lease
	Members []*corev1.Pod
	// Claim is the node that has it; empty if there is none.
	Claim string
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch,namespace=kube-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ebbtide-control-plane,verbs=list;watch,namespace=release
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;update,namespace=release

// Read asks the API server itself.
//
// Errors: something of it cannot be read, and then nothing of it is known.
func Read(ctx context.Context, c client.Client, namespace string) (Seen, error) {
	var leases coordinationv1.LeaseList
	if err := c.List(ctx, &leases, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabelsSelector{Selector: Of()}); err != nil {
		return Seen{}, fmt.Errorf("list the Leases of API servers: %w", err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabelsSelector{Selector: Members()}); err != nil {
		return Seen{}, fmt.Errorf("list the members of etcd: %w", err)
	}
	claim, err := get(ctx, c, namespace, ClaimName)
	if err != nil {
		return Seen{}, err
	}
	seen := Seen{Claim: Holder(claim)}
	for i := range leases.Items {
		seen.Servers = append(seen.Servers, &leases.Items[i])
	}
	for i := range pods.Items {
		seen.Members = append(seen.Members, &pods.Items[i])
	}
	return seen, nil
}

// Holder is who has a Lease; empty if nobody has.
func Holder(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// get reads a Lease; nil if there is none.
func get(ctx context.Context, c client.Client, namespace, name string) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get the Lease %s/%s: %w", namespace, name, err)
	}
	return &lease, nil
}

// Take takes the claim for a node, if nobody has it.
//
// Errors: another node has it, or it cannot be written.
func Take(ctx context.Context, c client.Client, namespace, node string) error {
	lease, err := get(ctx, c, namespace, ClaimName)
	switch holder := Holder(lease); {
	case err != nil:
		return err
	case holder != "" && holder != node:
		return fmt.Errorf("the control plane of %.253s is away, and one goes at a time", holder)
	}
	return write(ctx, c, lease, coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ClaimName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, AcquireTime: &metav1.MicroTime{Time: time.Now()}},
	})
}

// Release gives the claim of a node back.
//
// Errors: it cannot be read or written.
func Release(ctx context.Context, c client.Client, namespace, node string) error {
	lease, err := get(ctx, c, namespace, ClaimName)
	if err != nil || Holder(lease) != node {
		return err
	}
	lease.Spec = coordinationv1.LeaseSpec{}
	return write(ctx, c, lease, *lease)
}

// write makes a Lease, or gives the one that is there another spec.
func write(ctx context.Context, c client.Client, there *coordinationv1.Lease, is coordinationv1.Lease) error {
	var err error
	if there == nil {
		err = c.Create(ctx, &is)
	} else {
		there.Spec = is.Spec
		err = c.Update(ctx, there)
	}
	if err != nil {
		return fmt.Errorf("write the Lease %s/%s: %w", is.Namespace, is.Name, err)
	}
	return nil
}
