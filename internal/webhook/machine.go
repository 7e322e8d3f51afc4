package webhook

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=clusters,verbs=get

// machineValidator keeps the hooks of a Machine that is being deleted, and requires the right to
// delete the objects that are deleted with a Machine.
type machineValidator struct{ reviews reviewer }

// Handle denies a new Machine whose parts its author may not delete, and a change of hooks during the
// deletion. It warns of unknown hooks and of what the Machine will wait for.
func (v machineValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	change, err := v.observe(ctx, request)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if refused := change.Invalid(); len(refused) > 0 {
		return answer(change.New, refused)
	}
	if refusal := change.Refusal(request.UserInfo.Username); refusal != "" {
		return admission.Denied(refusal)
	}
	return admission.Allowed("").WithWarnings(change.Warnings()...)
}

func (v machineValidator) observe(ctx context.Context, request admission.Request) (change validate.MachineChange, err error) {
	change.Old, change.New, err = decodeChange[v1alpha1.Machine](request)
	if err != nil || request.Operation != admissionv1.Create {
		return change, err
	}
	// A cache may not have a Cluster that was created just before its Machines.
	cluster := types.NamespacedName{Namespace: change.New.Namespace, Name: change.New.Spec.ClusterName}
	err = v.reviews.client.Get(ctx, cluster, &v1alpha1.Cluster{})
	if client.IgnoreNotFound(err) != nil {
		return change, fmt.Errorf("get Cluster %s: %w", cluster.Name, err)
	}
	change.NoCluster = err != nil
	change.Parts = validate.MachineParts(change.New)
	for i := range change.Parts {
		if err := v.complete(ctx, request.UserInfo, change.New.Namespace, &change.Parts[i]); err != nil {
			return change, err
		}
	}
	return change, nil
}

// complete finds the resource of a part and whether the user may delete it. The resource of an
// unknown kind is guessed as its contract requires.
func (v machineValidator) complete(ctx context.Context, user authenticationv1.UserInfo, namespace string, part *validate.MachinePart) error {
	kind := schema.FromAPIVersionAndKind(part.Ref.APIVersion, part.Ref.Kind)
	mapper := v.reviews.client.RESTMapper()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if part.Unknown = apimeta.IsNoMatchError(err); part.Unknown {
		// Another version has the same objects.
		mapping, err = mapper.RESTMapping(kind.GroupKind())
	}
	switch {
	case err == nil:
		part.Resource, part.Cluster = mapping.Resource, mapping.Scope.Name() == apimeta.RESTScopeNameRoot
	case apimeta.IsNoMatchError(err):
		part.Resource, _ = apimeta.UnsafeGuessKindToResource(kind)
	default:
		return fmt.Errorf("find the resource of %s: %w", kind, err)
	}
	allowed, why, err := v.reviews.may(ctx, user, authorizationv1.ResourceAttributes{
		Verb: "delete", Group: part.Resource.Group, Version: part.Resource.Version, Resource: part.Resource.Resource,
		Namespace: namespace, Name: part.Ref.Name,
	})
	part.Refused, part.Why = !allowed, why
	return err
}
