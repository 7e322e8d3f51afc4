package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// errLate ends a request that takes too long.
var errLate = errors.New("no answer in time")

// exchange is a request, and what it asks for.
type exchange struct {
	*apirequest.RequestInfo
	request *http.Request
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

var requestInfo = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// RoundTrip is an http.RoundTripper.
func (g *Guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if found := g.breach.Load(); found != nil {
		return nil, found
	}
	path := strings.TrimPrefix(request.URL.Path, strings.TrimSuffix(g.server.Path, "/"))
	info, err := requestInfo.NewRequestInfo(&http.Request{Method: request.Method, URL: &url.URL{Path: path, RawQuery: request.URL.RawQuery}})
	if err != nil {
		return nil, err
	}
	c := exchange{RequestInfo: info, request: request}
	c.ctx, c.cancel = context.WithCancelCause(request.Context())
	response, err := g.answer(c)
	if err != nil {
		c.cancel(nil)
		if breachIn(err) != nil {
			g.Report(err)
		}
		return nil, err
	}
	return response, nil
}

// answer sends a request and checks the response.
func (g *Guard) answer(c exchange) (*http.Response, error) {
	late := time.AfterFunc(g.options.Message, func() { c.cancel(errLate) })
	defer late.Stop()
	response, err := g.transport.RoundTrip(c.sent())
	switch {
	case err == nil:
	case unfitHeader(err):
		return nil, breaks("the cluster sends a response whose headers are larger than %s or none of HTTP", size(headerBytes))
	case errors.Is(context.Cause(c.ctx), errLate):
		return nil, context.DeadlineExceeded
	default:
		return nil, err
	}
	// A user who may not ask whether the cluster is ready may do everything else.
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden && c.IsResourceRequest {
		g.refused.Store(true)
	}
	response.Header = fitHeader(response.Header)
	response.Status, response.Trailer = fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)), nil
	if c.Verb == "watch" && response.StatusCode == http.StatusOK {
		return response, g.watch(c, response)
	}
	if err := g.read(c, response, late); err != nil {
		if errors.Is(context.Cause(c.ctx), errLate) {
			err = breaks("a response took longer than %s", g.options.Message)
		}
		return nil, err
	}
	return response, nil
}

// sent is the request as the cluster gets it. A list that is read by pages is read by small
// ones, also where a cluster would return all at once.
func (c exchange) sent() *http.Request {
	request := c.request.WithContext(c.ctx)
	query := request.URL.Query()
	if limit, err := strconv.ParseInt(query.Get("limit"), 10, 64); c.Verb == "list" && err == nil && limit > 0 {
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
