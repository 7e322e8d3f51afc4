package evictor

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictions/status,verbs=patch

// report writes what a responder of ours says of itself, and nothing else.
func (r *reconciler) report(ctx context.Context, key types.NamespacedName, seen *core.ResponseSnapshot, d core.ResponseDecision) error {
	own := lifecycleac.ResponderStatus().WithName(d.Report.Name).WithMessage(*d.Report.Message).WithHeartbeatTime(*d.Report.HeartbeatTime)
	own.CompletionTime, own.ExpectedCompletionTime = d.Report.CompletionTime, d.Report.ExpectedCompletionTime
	applied := lifecycleac.Eviction(key.Name, key.Namespace).WithUID(seen.Eviction.UID).WithResourceVersion(seen.Eviction.ResourceVersion).
		WithStatus(lifecycleac.EvictionStatus().WithResponders(own))
	if err := r.reports.Status().Apply(ctx, applied, client.FieldOwner(core.ManagerOf(d.Report.Name)), client.ForceOwnership); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
