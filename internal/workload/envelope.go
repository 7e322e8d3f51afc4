package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"ebbtide.dev/ebbtide/internal/kube"
)

// envelopeMark begins every object of Kubernetes in protobuf.
var envelopeMark = []byte("k8s\x00")

// served is a kind that is asked for.
type served struct {
	kind             schema.GroupVersionKind
	object, list     reflect.Type
	partial, several reflect.Type
}

// catalogue has the kinds that Machines need by the path of their resource, such
// as "apis/apps/v1/daemonsets". Nothing else is taken of a cluster.
type catalogue map[string]served

func newCatalogue(scheme *runtime.Scheme, mapper meta.RESTMapper) (catalogue, error) {
	kinds := catalogue{}
	for _, object := range kube.WorkloadKinds() {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("name %T: %w", object, err)
		}
		list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return nil, fmt.Errorf("name the list of %s: %w", gvk.Kind, err)
		}
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
		}
		path := "apis/" + gvk.GroupVersion().String() + "/" + mapping.Resource.Resource
		if gvk.Group == "" {
			path = "api/" + gvk.Version + "/" + mapping.Resource.Resource
		}
		kinds[path] = served{
			kind: gvk, object: reflect.TypeOf(object).Elem(), list: reflect.TypeOf(list).Elem(),
			partial: reflect.TypeFor[metav1.PartialObjectMetadata](), several: reflect.TypeFor[metav1.PartialObjectMetadataList](),
		}
	}
	return kinds, nil
}

// wish is what a request asks for.
type wish struct {
	served
	// what names it in messages.
	what string
	// watch is true for a watch, list for a list and write for what is no read.
	watch, list, write bool
}

// wishOf finds out what a request asks for, below the path of the server.
func (c catalogue) wishOf(request *http.Request, base string) (wish, bool) {
	parts := strings.Split(strings.Trim(strings.TrimPrefix(request.URL.Path, base), "/"), "/")
	group := 3
	if parts[0] == "api" {
		group = 2
	}
	if len(parts) <= group {
		return wish{}, false
	}
	rest := parts[group:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		rest = rest[2:]
	}
	found, ok := c[strings.Join(append(slices.Clone(parts[:group]), rest[0]), "/")]
	query := request.URL.Query()
	w := wish{served: found, what: found.kind.Kind, write: request.Method != http.MethodGet}
	w.watch = !w.write && (query.Get("watch") == "true" || query.Get("watch") == "1")
	w.list = !w.write && !w.watch && len(rest) == 1
	return w, ok
}

// typeOf is what an object of this kind is decoded into; nil if it is nothing
// that was asked for.
func (w wish) typeOf(apiVersion, kind string) reflect.Type {
	own := apiVersion == w.kind.GroupVersion().String()
	partly := apiVersion == metav1.SchemeGroupVersion.String()
	switch {
	case apiVersion == "v1" && kind == "Status" && (w.write || w.watch):
		return reflect.TypeFor[metav1.Status]()
	case own && kind == w.kind.Kind && !w.list:
		return w.object
	case own && kind == w.kind.Kind+"List" && w.list:
		return w.served.list
	case partly && kind == w.partial.Name() && !w.list:
		return w.partial
	case partly && kind == w.several.Name() && w.list:
		return w.several
	}
	return nil
}

// envelope is what an object in protobuf says of itself.
type envelope struct {
	apiVersion, kind string
	raw              []byte
}

// unwrap reads no more than the envelope. It takes nothing that readers could
// understand in two ways.
func unwrap(data []byte) (e envelope, err error) {
	data, ok := bytes.CutPrefix(data, envelopeMark)
	if !ok {
		return e, errMalformed
	}
	seen := map[uint64]bool{}
	for len(data) > 0 {
		token, rest, ok := takeToken(data)
		if !ok || seen[token.number] || token.wire != text {
			return e, errMalformed
		}
		data, seen[token.number] = rest, true
		switch {
		case token.number == 1:
			if e.apiVersion, e.kind, err = typeMeta(token.value); err != nil {
				return e, err
			}
		case token.number == 2:
			e.raw = token.value
		case len(token.value) > 0: // It is encoded in another way once more.
			return e, errMalformed
		}
	}
	return e, nil
}

func typeMeta(data []byte) (apiVersion, kind string, err error) {
	for len(data) > 0 {
		token, rest, ok := takeToken(data)
		if !ok || len(token.value) > longestName {
			return "", "", errMalformed
		}
		data = rest
		switch token.number {
		case 1:
			apiVersion = string(token.value)
		case 2:
			kind = string(token.value)
		}
	}
	return apiVersion, kind, nil
}

// shownCauses is how many causes of a refusal are kept.
const shownCauses = 16

// statusOf reads what a cluster says of a failure, in whichever form, as far as
// it can be read.
func statusOf(code int, body []byte) metav1.Status {
	status := metav1.Status{}
	if e, err := unwrap(body); err == nil && e.kind == "Status" {
		if (&scale{left: 1 << 20, over: errMalformed}).message(reflect.TypeFor[metav1.Status](), e.raw) != nil || status.Unmarshal(e.raw) != nil {
			status = metav1.Status{}
		}
	} else if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		status = metav1.Status{Message: string(body)}
	}
	status.Code = int32(code)
	status.Status = metav1.StatusFailure
	return status
}

// clean leaves of a Status what clients understand, without secrets.
func (s secrets) clean(status metav1.Status) metav1.Status {
	cleaned := metav1.Status{
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

// wrap writes a Status in protobuf.
func wrap(status metav1.Status) ([]byte, error) {
	raw, err := status.Marshal()
	if err != nil {
		return nil, fmt.Errorf("write a Status: %w", err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw}
	data, err := unknown.Marshal()
	if err != nil {
		return nil, fmt.Errorf("write a Status: %w", err)
	}
	return append(slices.Clone(envelopeMark), data...), nil
}
