package evictionrequest

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// lease is the one by which two Ebbtides of a cluster know of each other. Among the
// managers of one of them, whoever leads has it.
type lease struct {
	client client.Client
	holder string
	now    func() time.Time

	// seen is the version that another holder has last written, since is when we saw that.
	seen  string
	since time.Time
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=kube-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ebbtide-eviction-controller,verbs=get;update,namespace=kube-system

// take takes or renews the Lease, and returns who else holds it; empty if we do. With force
// nobody else's counts.
//
// Errors: it cannot be read or written.
func (l *lease) take(ctx context.Context, force bool) (holder string, err error) {
	found := &coordinationv1.Lease{}
	err = l.client.Get(ctx, client.ObjectKey{Namespace: core.LeaseNamespace, Name: core.Lease}, found)
	switch {
	case apierrors.IsNotFound(err):
		found = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: core.LeaseNamespace, Name: core.Lease}}
		l.fill(found)
		if err := l.client.Create(ctx, found); err != nil {
			return "", fmt.Errorf("create the Lease %s: %w", core.Lease, err)
		}
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get the Lease %s: %w", core.Lease, err)
	}
	if other := ptr.Deref(found.Spec.HolderIdentity, ""); !force && other != "" && other != l.holder && !l.over(found) {
		return other, nil
	}
	l.fill(found)
	if err := l.client.Update(ctx, found); err != nil {
		return "", fmt.Errorf("renew the Lease %s: %w", core.Lease, err)
	}
	return "", nil
}

// over reports whether nobody has renewed the Lease for as long as it is believed, by our
// own watch: its times are those of another clock.
func (l *lease) over(found *coordinationv1.Lease) bool {
	if found.ResourceVersion != l.seen {
		l.seen, l.since = found.ResourceVersion, time.Now()
	}
	return time.Since(l.since) > core.LeaseDuration
}

func (l *lease) fill(found *coordinationv1.Lease) {
	now := metav1.NewMicroTime(l.now())
	if ptr.Deref(found.Spec.HolderIdentity, "") != l.holder {
		found.Spec.AcquireTime = &now
		found.Spec.LeaseTransitions = ptr.To(ptr.Deref(found.Spec.LeaseTransitions, 0) + 1)
	}
	found.Spec.HolderIdentity, found.Spec.RenewTime = &l.holder, &now
	found.Spec.LeaseDurationSeconds = ptr.To(int32(core.LeaseDuration / time.Second))
}
