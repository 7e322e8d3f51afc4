package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// evictionRequestValidator requires the right to delete the pod, which is evicted for the author in
// the end. Kubernetes does not check it.
type evictionRequestValidator struct{ reviews reviewer }

// Handle denies the request of an author who may not delete the pod.
func (v evictionRequestValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	requested := &lifecyclev1alpha1.EvictionRequest{}
	if err := json.Unmarshal(request.Object.Raw, requested); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the EvictionRequest: %w", err))
	}
	if requested.Spec.Target.Pod == nil || requested.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction {
		return admission.Allowed("")
	}
	pod := requested.Spec.Target.Pod.Name
	return v.reviews.authorize(ctx, request, deletePod(request.Namespace, pod), func(why string) string {
		message := fmt.Sprintf("user %q may not request the eviction of pod %s/%s, which requires the right to delete it", request.UserInfo.Username, request.Namespace, pod)
		if why != "" {
			message += ": " + why
		}
		return message
	})
}
