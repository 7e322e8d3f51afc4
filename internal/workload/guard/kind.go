package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"ebbtide.dev/ebbtide/internal/kube"
)

// shownCauses limits the causes of a refusal that are kept.
const shownCauses = 16

// Kinds are the types that a response about a resource may have.
type Kinds map[string]map[schema.GroupVersionKind]reflect.Type

// NewKinds returns the kinds that Machines need.
//
// Errors: the scheme does not know one.
func NewKinds(scheme *runtime.Scheme) (Kinds, error) {
	all, types := Kinds{}, scheme.AllKnownTypes()
	for _, object := range kube.WorkloadKinds() {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("name %T: %w", object, err)
		}
		list := kind.GroupVersion().WithKind(kind.Kind + "List")
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		all[resource.Resource] = map[schema.GroupVersionKind]reflect.Type{
			kind: types[kind], list: types[list],
			metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"):     reflect.TypeFor[metav1.PartialObjectMetadata](),
			metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"): reflect.TypeFor[metav1.PartialObjectMetadataList](),
			metav1.Unversioned.WithKind("Status"):                           reflect.TypeFor[metav1.Status](),
		}
	}
	return all, nil
}

// weigh returns how much memory a message about a resource takes when it is decoded, and the
// object in it.
func (g *Guard) weigh(resource string, message []byte, most int64) (weight int64, object runtime.Unknown, err error) {
	if object, err = unwrap(message); err != nil {
		return 0, object, err
	}
	into := g.options.Kinds[resource][schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)]
	if into == nil {
		return 0, object, breaks("the cluster sends something else than the requested %s", resource)
	}
	s := &scale{left: most}
	if err = s.message(into, object.Raw); errors.Is(err, errTooLarge) {
		err = breaks("the cluster sends a message of %s that would take more than %s of memory", resource, size(most))
	}
	return most - s.left, object, err
}

// unwrap reads the envelope of an object in protobuf, by the same code as clients.
func unwrap(message []byte) (object runtime.Unknown, err error) {
	raw, ok := bytes.CutPrefix(message, []byte("k8s\x00"))
	if !ok || object.Unmarshal(raw) != nil {
		return object, errMalformed
	}
	return object, nil
}

// statusOf reads the Status of a failed request, as far as it can be read.
func statusOf(code int, body []byte) metav1.Status {
	status := metav1.Status{}
	if object, err := unwrap(body); err == nil {
		_ = status.Unmarshal(object.Raw)
	} else if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		status = metav1.Status{Message: string(body)}
	}
	status.Code, status.Status = int32(code), metav1.StatusFailure
	return status
}

// clean returns what clients understand of a Status, without secrets.
func (s secrets) clean(status metav1.Status) *metav1.Status {
	cleaned := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   status.Status, Message: s.line(status.Message), Reason: metav1.StatusReason(s.line(string(status.Reason))), Code: status.Code,
	}
	if details := status.Details; details != nil {
		cleaned.Details = &metav1.StatusDetails{
			Name: s.line(details.Name), Group: s.line(details.Group), Kind: s.line(details.Kind), UID: details.UID,
			RetryAfterSeconds: min(max(details.RetryAfterSeconds, 0), longestRetry),
		}
		for _, cause := range details.Causes[:min(len(details.Causes), shownCauses)] {
			cleaned.Details.Causes = append(cleaned.Details.Causes, metav1.StatusCause{
				Type: metav1.CauseType(s.line(string(cause.Type))), Message: s.line(cause.Message), Field: s.line(cause.Field),
			})
		}
	}
	return cleaned
}

// encode writes a Status in protobuf.
func encode(status *metav1.Status) ([]byte, error) {
	var message bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(status, &message); err != nil {
		return nil, fmt.Errorf("write a Status: %w", err)
	}
	return message.Bytes(), nil
}
