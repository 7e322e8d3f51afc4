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
	// ClaimName is the Lease whose holder may take its part of the control plane down.
	ClaimName = "ebbtide-control-plane"
	// identity labels the Leases of API servers.
	identity, apiServer = "apiserver.kubernetes.io/identity", "kube-apiserver"
)

// Of selects Leases of API servers in kube-system.
func Of() labels.Selector { return labels.SelectorFromSet(labels.Set{identity: apiServer}) }

// Members selects pods of etcd in kube-system.
func Members() labels.Selector { return labels.SelectorFromSet(labels.Set{"component": "etcd"}) }

// Seen is the control plane as the API shows it.
type Seen struct {
	Servers []*coordinationv1.Lease
	Members []*corev1.Pod
	// Claim is the node that holds the claim, if any.
	Claim string
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch,namespace=kube-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ebbtide-control-plane,verbs=list;watch,namespace=release
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;update,namespace=release

// Read reads the control plane from the API server. It fails if any part cannot be read.
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

// Holder returns the holder of a Lease, if any.
func Holder(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

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

// Take takes the claim for a node. It fails if another node has it, or if it cannot be written.
func Take(ctx context.Context, c client.Client, namespace, node string) error {
	lease, err := get(ctx, c, namespace, ClaimName)
	switch holder := Holder(lease); {
	case err != nil:
		return err
	case holder != "" && holder != node:
		return fmt.Errorf("the control plane of %.253s is away", holder)
	}
	return write(ctx, c, lease, coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ClaimName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, AcquireTime: &metav1.MicroTime{Time: time.Now()}},
	})
}

// Release releases the claim of a node.
func Release(ctx context.Context, c client.Client, namespace, node string) error {
	lease, err := get(ctx, c, namespace, ClaimName)
	if err != nil || Holder(lease) != node {
		return err
	}
	lease.Spec = coordinationv1.LeaseSpec{}
	return write(ctx, c, lease, *lease)
}

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
