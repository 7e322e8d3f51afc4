package webhook

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// refusedGate returns why the user may not use one of the new gates; empty if they may. Otherwise a
// gate could tell about objects that the user may not read.
func (r reviewer) refusedGate(ctx context.Context, user authenticationv1.UserInfo, change validate.RolloutChange) (string, error) {
	for _, gate := range change.NewObjectGates() {
		refusal, err := r.reviewGate(ctx, user, &gate)
		if err != nil || refusal != "" {
			return refusal, err
		}
	}
	return "", nil
}

func (r reviewer) reviewGate(ctx context.Context, user authenticationv1.UserInfo, gate *v1alpha1.RolloutGate) (string, error) {
	object := gate.Object
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	mapping, err := r.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return validate.UnservedGate(gate), nil
	case err != nil:
		return "", fmt.Errorf("find the resource of gate %s: %w", gate.Name, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if namespaced != (object.Namespace != "") {
		return validate.MisplacedGate(gate, namespaced), nil
	}
	what := authorizationv1.ResourceAttributes{
		Verb: "get", Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
		Namespace: object.Namespace, Name: object.Name,
	}
	allowed, _, err := r.may(ctx, user, what)
	if err != nil || allowed {
		return "", err
	}
	return validate.GateRefusal(gate, user.Username, what), nil
}
