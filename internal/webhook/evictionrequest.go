package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// evictionRequestValidator lets only those ask for the eviction of a pod who may delete it:
// in the end it is evicted for them. Kubernetes leaves that to who gives the rights.
type evictionRequestValidator struct{ reviews reviewer }

// Handle asks the API server what the author may do. A review that fails is not a yes.
func (v evictionRequestValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	asked := &lifecyclev1alpha1.EvictionRequest{}
	if err := json.Unmarshal(request.Object.Raw, asked); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the EvictionRequest: %w", err))
	}
	if asked.Spec.Target.Pod == nil || asked.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction {
		return admission.Allowed("")
	}
	pod := asked.Spec.Target.Pod.Name
	allowed, why, err := v.reviews.may(ctx, request.UserInfo, authorizationv1.ResourceAttributes{
		Verb: "delete", Resource: "pods", Version: "v1", Namespace: request.Namespace, Name: pod,
	})
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case allowed:
		return admission.Allowed("")
	}
	message := fmt.Sprintf("user %q may not ask for the eviction of pod %s/%s, because that takes the right to delete it", request.UserInfo.Username, request.Namespace, pod)
	if why != "" {
		message += ": " + why
	}
	return admission.Denied(message)
}
