package webhook

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// decodeChange reads the old and the new object; nil if there is none.
func decodeChange[T any](request admission.Request) (before, after *T, err error) {
	if before, err = decode[T](request.OldObject); err != nil {
		return nil, nil, fmt.Errorf("read the old %s: %w", request.Kind.Kind, err)
	}
	if after, err = decode[T](request.Object); err != nil {
		return nil, nil, fmt.Errorf("read the %s: %w", request.Kind.Kind, err)
	}
	return before, after, nil
}

func decode[T any](raw runtime.RawExtension) (*T, error) {
	if len(raw.Raw) == 0 {
		return nil, nil
	}
	object := new(T)
	return object, json.Unmarshal(raw.Raw, object)
}

// answer rejects an object like the API server, field by field.
func answer(object client.Object, refused field.ErrorList) admission.Response {
	if len(refused) == 0 {
		return admission.Allowed("")
	}
	kind := object.GetObjectKind().GroupVersionKind().GroupKind()
	status := apierrors.NewInvalid(kind, object.GetName(), refused).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}
