package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/internal/kube"
)

// evacuationDefaulter completes a new Evacuation from its pod.
type evacuationDefaulter struct{ pods registry }

// Handle completes a new Evacuation. An invalid one is left to the schema, and one without a pod to
// the validator.
func (d evacuationDefaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	_, e, err := decodeChange[v1alpha1.Evacuation](request)
	if err != nil || e.Spec.PodRef.Name == "" {
		return admission.Allowed("")
	}
	seen, err := d.pods.find(ctx, podOf(e))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if seen.pod == nil || seen.pod.UID != e.Spec.PodRef.UID {
		return admission.Allowed("")
	}
	given := e.Spec.Evacuators
	evacuation.Complete(e, seen.pod, seen.evacuators)
	changed, err := json.Marshal(e)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("write the Evacuation: %w", err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed).
		WithWarnings(append(validate.InstigatorWarnings(e), validate.EvacuationWarnings(given, seen.of(e), seen.problems)...)...)
}

// evacuationValidator requires the right to delete the pod.
type evacuationValidator struct {
	pods    registry
	reviews reviewer
}

// Handle denies a user who may not delete the pod, and an Evacuation that does not fit its pod.
func (v evacuationValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	before, after, err := decodeChange[v1alpha1.Evacuation](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	e := after
	if request.Operation == admissionv1.Delete {
		e = before
	}
	authorized := v.reviews.authorize(ctx, request, deletePod(e.Namespace, e.Spec.PodRef.Name), func(why string) string {
		return validate.EvacuationRefusal(request.UserInfo.Username, e, why)
	})
	if !authorized.Allowed {
		return authorized
	}
	seen, err := v.pods.find(ctx, podOf(e))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	switch request.Operation {
	case admissionv1.Create:
		return answer(e, validate.CreateEvacuation(seen.of(e)))
	case admissionv1.Delete:
		return answer(e, validate.DeleteEvacuation(seen.of(e)))
	default:
		return answer(e, validate.UpdateEvacuation(seen.of(e), before))
	}
}

// evacuationStatusValidator validates the reports of evacuators.
type evacuationStatusValidator struct{ now kube.Now }

// Handle rejects an impossible status.
func (v evacuationStatusValidator) Handle(_ context.Context, request admission.Request) admission.Response {
	before, after, err := decodeChange[v1alpha1.Evacuation](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	now, skewed := v.now()
	if skewed {
		// Evacuators are not to blame for our clock. Late reports are ignored once it is right.
		return admission.Allowed("")
	}
	return answer(after, validate.UpdateEvacuationStatus(after.Status, before.Status, now))
}

// deletePod returns the right to delete a pod.
func deletePod(namespace, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods", Version: "v1", Namespace: namespace, Name: name}
}

func podOf(e *v1alpha1.Evacuation) podKey {
	return podKey{types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.PodRef.Name}, evacuation.PodVersion{UID: e.Spec.PodRef.UID}}
}
