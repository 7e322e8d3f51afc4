package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// longestRetry limits the seconds by which a cluster may delay the next attempt.
const longestRetry = 10

// errLate ends a request that takes too long.
var errLate = errors.New("no answer in time")

// exchange is a request, and what it requests. It ends with ctx.
type exchange struct {
	*apirequest.RequestInfo
	request *http.Request
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

var requestInfo = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// RoundTrip implements http.RoundTripper.
func (g *Guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if found := g.breach.Load(); found != nil {
		return nil, found
	}
	path := strings.TrimPrefix(request.URL.Path, strings.TrimSuffix(g.server.Path, "/"))
	info, err := requestInfo.NewRequestInfo(&http.Request{Method: request.Method, URL: &url.URL{Path: path, RawQuery: request.URL.RawQuery}})
	if err != nil {
		return nil, err
	}
	e := exchange{RequestInfo: info, request: request}
	e.ctx, e.cancel = context.WithCancelCause(request.Context())
	response, err := g.answer(e)
	if err != nil {
		e.cancel(nil)
		if breachIn(err) != nil {
			g.Report(err)
		}
		return nil, err
	}
	return response, nil
}

// answer sends a request and checks the response.
func (g *Guard) answer(e exchange) (*http.Response, error) {
	late := time.AfterFunc(g.options.Message, func() { e.cancel(errLate) })
	defer late.Stop()
	response, err := g.transport.RoundTrip(e.sent())
	switch {
	case err == nil:
	case unfitHeader(err):
		return nil, breaks("the cluster sends a response whose headers are larger than %s or none of HTTP", size(headerBytes))
	case errors.Is(context.Cause(e.ctx), errLate):
		return nil, context.DeadlineExceeded
	default:
		return nil, err
	}
	// A user who may not read whether the cluster is ready may do everything else.
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden && e.IsResourceRequest {
		g.refused.Store(true)
	}
	response.Header = fitHeader(response.Header)
	response.Status, response.Trailer = fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)), nil
	if e.Verb == "watch" && response.StatusCode == http.StatusOK {
		return response, g.watch(e, response)
	}
	if err := g.read(e, response); err != nil {
		if errors.Is(context.Cause(e.ctx), errLate) {
			err = breaks("a response took longer than %s", g.options.Message)
		}
		return nil, err
	}
	e.cancel(nil)
	return response, nil
}

// sent returns the request as the cluster gets it. A list that is read by pages is read by small
// ones, also where a cluster would return all at once.
func (e exchange) sent() *http.Request {
	request := e.request.WithContext(e.ctx)
	query := request.URL.Query()
	if limit, err := strconv.ParseInt(query.Get("limit"), 10, 64); e.Verb == "list" && err == nil && limit > 0 {
		query.Set("limit", strconv.FormatInt(min(limit, pageObjects), 10))
		if query.Get("resourceVersion") == "0" {
			query.Del("resourceVersion")
			query.Del("resourceVersionMatch")
		}
		target := *request.URL
		target.RawQuery = query.Encode()
		request.URL = &target
	}
	return request
}

// list identifies the list of an exchange, or of its watch.
func (e exchange) list() string {
	return e.request.URL.Path + " " + e.request.URL.Query().Get("fieldSelector")
}

// read replaces the body of a response by the checked one.
func (g *Guard) read(e exchange, response *http.Response) error {
	defer response.Body.Close()
	_, known := g.options.Kinds[e.Resource]
	failed := response.StatusCode < http.StatusOK || response.StatusCode > http.StatusAccepted
	limit := int64(messageBytes)
	switch {
	case failed, !known:
		limit = errorBytes
	case e.Verb == "list":
		limit = responseBytes
	}
	body, err := g.receive(io.LimitReader(response.Body, limit+1))
	defer func() { _ = g.account.take(-buffers * int64(len(body))) }()
	switch over := int64(len(body)) > limit; {
	case err != nil:
		return err
	case failed:
		response.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
		body, err = encode(g.secrets.clean(statusOf(response.StatusCode, body[:min(len(body), errorBytes)])))
	case over:
		return breaks("the cluster sends a response that is larger than %s", size(limit))
	case known:
		err = g.check(e, response, body)
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return err
}

// receive reads a message, which counts from when it comes. The caller gives its bytes back.
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

// check weighs a body. A page counts until its list is complete: a cache starts a watch or a
// new list, another reader ends its context.
func (g *Guard) check(e exchange, response *http.Response, body []byte) error {
	if err := protobufOnly(e, response); err != nil {
		return err
	}
	most := int64(2 * messageBytes)
	if e.Verb == "list" {
		most = decodedBytes
	}
	weight, _, err := g.weigh(e.Resource, body, most)
	if err != nil || e.Verb != "list" {
		return err
	}
	list := e.list()
	if e.request.URL.Query().Get("continue") == "" {
		g.forget(list)
		context.AfterFunc(e.request.Context(), func() { g.forget(list) })
	}
	weight += int64(len(body)) + pageBytes
	g.mu.Lock()
	g.lists[list] += weight
	g.mu.Unlock()
	return g.account.take(weight)
}

// forget stops counting a list.
func (g *Guard) forget(list string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.account.take(-g.lists[list])
	delete(g.lists, list)
}

// protobufOnly refuses everything else: JSON cannot be weighed before it is decoded.
func protobufOnly(e exchange, response *http.Response) error {
	if media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); media != runtime.ContentTypeProtobuf {
		return breaks("the cluster does not send %s in protobuf, in which they were requested", e.Resource)
	}
	return nil
}

// unfitHeader reports whether the transport has refused headers, for which it has no type of
// error: the second is for some, the last for many of HTTP/2.
func unfitHeader(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server response headers exceeded") ||
		strings.Contains(text, "header list larger than advertised limit") || strings.HasPrefix(text, "connection error: ")
}

// fitHeader returns the headers that clients understand.
func fitHeader(header http.Header) http.Header {
	fit := http.Header{}
	if value := header.Get("Content-Type"); value != "" && len(value) < longest {
		fit.Set("Content-Type", value)
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		fit.Set("Date", date.UTC().Format(http.TimeFormat))
	}
	if text := header.Get("Retry-After"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 32)
		if err != nil || seconds > longestRetry {
			seconds = longestRetry
		}
		fit.Set("Retry-After", strconv.FormatUint(seconds, 10))
	}
	return fit
}
