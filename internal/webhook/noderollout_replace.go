package webhook

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/internal/core/validate"
)

// refusesReplacement returns why the user may not have machines deleted: each kind that rollouts may
// delete needs the right to delete it in all namespaces, as any of its objects may own a node.
func (v rolloutValidator) refusesReplacement(ctx context.Context, request admission.Request, change validate.RolloutChange) (string, error) {
	if !change.Replaces() {
		return "", nil
	}
	for _, kind := range v.machines {
		resource := kind.Resource()
		allowed, why, err := v.reviews.may(ctx, request.UserInfo, authorizationv1.ResourceAttributes{Verb: "delete", Group: resource.Group, Resource: resource.Resource})
		if err != nil {
			return "", err
		}
		if !allowed {
			return validate.MachineRefusal(request.UserInfo.Username, resource.String(), why), nil
		}
	}
	return "", nil
}
