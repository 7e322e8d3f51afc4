package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// longestRetry is how many seconds a cluster may delay the next attempt.
	longestRetry = 10
	// shownCauses is how many causes of a refusal are kept.
	shownCauses = 16
)

// Kinds are the types that a response about a resource may have.
type Kinds map[string]map[schema.GroupVersionKind]reflect.Type

// NewKinds returns the kinds that Machines need.
//
// Errors: the scheme does not know one.
func NewKinds(scheme *runtime.Scheme) (Kinds, error) {
	all := Kinds{}
	for _, object := range kube.WorkloadKinds() {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("name %T: %w", object, err)
		}
		several := kind.GroupVersion().WithKind(kind.Kind + "List")
		list, err := scheme.New(several)
		if err != nil {
			return nil, fmt.Errorf("name the list of %s: %w", kind.Kind, err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		all[resource.Resource] = map[schema.GroupVersionKind]reflect.Type{
			kind: reflect.TypeOf(object).Elem(), several: reflect.TypeOf(list).Elem(),
			metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"):     reflect.TypeFor[metav1.PartialObjectMetadata](),
			metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"): reflect.TypeFor[metav1.PartialObjectMetadataList](),
			metav1.Unversioned.WithKind("Status"):                           reflect.TypeFor[metav1.Status](),
		}
	}
	return all, nil
}

// read replaces the body of a response by what was read and checked of it.
func (g *Guard) read(c exchange, response *http.Response, late *time.Timer) error {
	defer response.Body.Close()
	_, known := g.options.Kinds[c.Resource]
	failed := response.StatusCode < http.StatusOK || response.StatusCode > http.StatusAccepted
	limit := int64(messageBytes)
	switch {
	case failed, !known:
		limit = errorBytes
	case c.Verb == "list":
		limit = responseBytes
	}
	body, err := g.receive(io.LimitReader(response.Body, limit+1))
	defer func() { _ = g.account.take(-buffers * int64(len(body))) }()
	late.Stop() // From here on the request waits only for memory.
	switch over := int64(len(body)) > limit; {
	case err != nil:
		return err
	case failed:
		response.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
		body, err = encode(g.secrets.clean(statusOf(response.StatusCode, body[:min(len(body), errorBytes)])))
	case over:
		return breaks("the cluster sends a response that is larger than %s", size(limit))
	case known:
		err = g.check(c, response, body)
	}
	response.Body, response.ContentLength = &checked{bytes.NewReader(body), c.cancel}, int64(len(body))
	return err
}

// checked is a body whose memory is given back when it is closed.
type checked struct {
	io.Reader
	cancel context.CancelCauseFunc
}

// Close gives the memory back.
func (c *checked) Close() error {
	c.cancel(nil)
	return nil
}

// receive reads a message, whose bytes count from when they come. The caller gives them back.
func (g *Guard) receive(from io.Reader) ([]byte, error) {
	var body bytes.Buffer
	for {
		n, err := io.CopyN(&body, from, 32<<10)
		if over := g.account.take(buffers * n); over != nil {
			err = over
		}
		switch {
		case errors.Is(err, io.EOF):
			return body.Bytes(), nil
		case err != nil:
			return body.Bytes(), err
		}
	}
}

// check weighs a body and waits until it may be decoded.
func (g *Guard) check(c exchange, response *http.Response, body []byte) error {
	if err := g.protobuf(c, response); err != nil {
		return err
	}
	most := int64(2 * messageBytes)
	if c.Verb == "list" {
		most = decodedBytes
	}
	weight, _, err := g.weigh(c.Resource, body, most)
	if err != nil {
		return err
	}
	if _, err := g.decode(c, body, weight); err != nil || c.Verb != "list" {
		return err
	}
	return g.page(c, weight+int64(len(body))+pageBytes)
}

// protobuf refuses everything else. JSON cannot be weighed before it is decoded.
func (g *Guard) protobuf(c exchange, response *http.Response) error {
	if media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); media != runtime.ContentTypeProtobuf {
		return breaks("the cluster does not send %s in protobuf, in which they were asked for", c.Resource)
	}
	return nil
}

// decode waits until a message may be decoded.
func (g *Guard) decode(c exchange, message []byte, weight int64) (release func(), err error) {
	return g.account.decode(c.ctx, weight+copies*int64(len(message)), g.options.Message)
}

// weigh returns what becomes of a message about a resource, and how much memory it takes.
func (g *Guard) weigh(resource string, message []byte, most int64) (weight int64, object runtime.Unknown, err error) {
	if object, err = unwrap(message); err != nil {
		return 0, object, err
	}
	into := g.options.Kinds[resource][schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)]
	if into == nil {
		return 0, object, breaks("the cluster sends something else than the %s that it was asked for", resource)
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

// page counts a page of a list until the list is complete: a cache says so by a watch or a
// new list, another reader by the end of its context.
func (g *Guard) page(c exchange, weight int64) error {
	query := c.request.URL.Query()
	list := c.request.URL.Path + " " + query.Get("fieldSelector")
	if query.Get("continue") == "" {
		g.forget(list)
		context.AfterFunc(c.request.Context(), func() { g.forget(list) })
	}
	g.mu.Lock()
	g.lists[list] += weight
	g.mu.Unlock()
	return g.account.take(weight)
}

// forget gives back what a list takes.
func (g *Guard) forget(list string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.account.take(-g.lists[list])
	delete(g.lists, list)
}

// statusOf reads what a cluster says of a failure, as far as it can be read.
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
