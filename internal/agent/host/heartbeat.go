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

// RenewAfter is the renewal interval of the Lease of an agent.
const RenewAfter = 10 * time.Second

// Heartbeat renews a Lease. It is for one goroutine.
type Heartbeat struct {
	Client          client.Client
	Namespace, Name string

	there *coordinationv1.Lease // as it was last written
}

// Renew renews the Lease, which the Node owns. After an error the next call reads it again.
func (h *Heartbeat) Renew(ctx context.Context, node *corev1.Node) error {
	lasts, now := int32(maintenance.AgentLeaseLasts/time.Second), metav1.NewMicroTime(time.Now())
	if h.there == nil {
		var err error
		if h.there, err = get(ctx, h.Client, h.Namespace, h.Name); err != nil {
			return err
		}
	}
	lease := h.there
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Namespace, Name: h.Name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		}}
	}
	is := *lease
	is.Spec.HolderIdentity, is.Spec.LeaseDurationSeconds, is.Spec.RenewTime = &node.Name, &lasts, &now
	err := write(ctx, h.Client, h.there, is)
	if h.there == nil || err != nil {
		// A created Lease is read once more.
		h.there = nil
	}
	return err
}
