package host

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// RenewAfter is how often the Lease of an agent is renewed.
const RenewAfter = 10 * time.Second

// Beat renews a Lease. One goroutine may use it.
type Beat struct {
	Client          client.Client
	Namespace, Name string

	there *coordinationv1.Lease // as it was last written
}

// Renew writes that whoever has the Lease on a node runs. It ends with the Node.
//
// Errors: it cannot be written. The next call reads it anew.
func (b *Beat) Renew(ctx context.Context, node *corev1.Node) error {
	lasts, now := int32(maintenance.AgentLeaseLasts/time.Second), metav1.NewMicroTime(time.Now())
	if b.there == nil {
		var err error
		if b.there, err = get(ctx, b.Client, b.Namespace, b.Name); err != nil {
			return err
		}
	}
	lease := b.there
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace, Name: b.Name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		}}
	}
	is := *lease
	is.Spec.HolderIdentity, is.Spec.LeaseDurationSeconds, is.Spec.RenewTime = &node.Name, &lasts, &now
	err := write(ctx, b.Client, b.there, is)
	if b.there == nil || err != nil {
		// What was created is read once more.
		b.there = nil
	}
	return err
}
