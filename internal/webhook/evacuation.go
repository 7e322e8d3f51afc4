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

// evacuationDefaulter gives a new Evacuation what it has from its pod.
type evacuationDefaulter struct{ pods registry }

// Handle completes a new Evacuation. One that cannot be read or names no pod is
// left alone: the CRD refuses it later and names the field. So is one of a pod
// that does not exist; the validator refuses it.
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

// evacuationValidator lets nobody evacuate a pod who may not delete it.
type evacuationValidator struct {
	pods    registry
	reviews reviewer
}

// Handle refuses a request by somebody who may not delete the pod, and an
// Evacuation that does not fit its pod.
func (v evacuationValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	before, after, err := decodeChange[v1alpha1.Evacuation](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	e := after
	if request.Operation == admissionv1.Delete {
		e = before
	}
	allowed, why, err := v.reviews.may(ctx, request.UserInfo, deletePod(e))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if !allowed {
		return admission.Denied(validate.EvacuationRefusal(request.UserInfo.Username, e, why))
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

// evacuationStatusValidator holds evacuators to what they may report.
type evacuationStatusValidator struct{ now kube.Now }

// Handle refuses a status that cannot be true.
func (v evacuationStatusValidator) Handle(_ context.Context, request admission.Request) admission.Response {
	before, after, err := decodeChange[v1alpha1.Evacuation](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	now, skewed := v.now()
	if skewed {
		// Who reports progress is not to blame for our clock. What is too late is not
		// believed when ours is right.
		return admission.Allowed("")
	}
	return answer(after, validate.UpdateEvacuationStatus(after.Status, before.Status, now))
}

// deletePod is the right to delete the pod of an Evacuation.
func deletePod(e *v1alpha1.Evacuation) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: "delete", Resource: "pods", Version: "v1", Namespace: e.Namespace, Name: e.Spec.PodRef.Name,
	}
}

func podOf(e *v1alpha1.Evacuation) podKey {
	return podKey{types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.PodRef.Name}, evacuation.PodVersion{UID: e.Spec.PodRef.UID}}
}
