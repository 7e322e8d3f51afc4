package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// longestRetry is how many seconds a cluster may ask for until the next try.
const longestRetry = 10

// guard stands between a cluster and everything that reads of it. It asks for
// protobuf and for no compression, and hands on what is within the limits, what was
// asked for, and of headers and errors what is fit to be shown.
type guard struct {
	next    http.RoundTripper
	limits  limits
	account *account
	secrets secrets
	kinds   catalogue
	// base is the path of the server.
	base string
	// broken ends the connection, found returns why it has ended.
	broken func(error)
	found  func() error

	mu    sync.Mutex
	lists map[string]*listing
}

// listing is a list that is being read, page by page.
type listing struct{ objects, weight, pages int64 }

// RoundTrip has a request answered within the limits.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := g.found(); err != nil {
		return nil, err
	}
	response, err := g.answer(request)
	if breachIn(err) != nil {
		g.broken(err)
	}
	return response, err
}

func (g *guard) answer(request *http.Request) (*http.Response, error) {
	wish, known := g.kinds.wishOf(request, g.base)
	ctx, cancel := context.WithCancelCause(request.Context())
	late := time.AfterFunc(g.limits.time, func() { cancel(context.DeadlineExceeded) })
	response, err := g.next.RoundTrip(g.prepare(request.WithContext(ctx), wish))
	if err == nil {
		response.Header = fitHeader(response.Header)
		response.Status, response.Trailer = fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)), nil
		if wish.watch && response.StatusCode == http.StatusOK {
			late.Stop()
			return g.stream(response, wish, cancel)
		}
		err = g.read(response, wish, known)
	} else if unfitHeader(err) {
		err = breaks("the cluster sends a response whose headers are larger than %s or none of HTTP", size(g.limits.headers))
	}
	late.Stop()
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) && request.Context().Err() == nil {
		if response != nil {
			err = breaks("a response took longer than %s", g.limits.time)
		} else {
			err = context.DeadlineExceeded
		}
	}
	cancel(nil)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// unfitHeader is true for what the transport says of headers beyond its limit, for
// which it has no type: the second is for some, the last for many of HTTP/2.
func unfitHeader(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server response headers exceeded") ||
		strings.Contains(text, "header list larger than advertised limit") || strings.HasPrefix(text, "connection error: ")
}

// prepare asks for no more than is wanted. Without limits by which a cluster
// hands out pages, its answer would be as large as the cluster.
func (g *guard) prepare(request *http.Request, wish wish) *http.Request {
	query := request.URL.Query()
	if asked, err := strconv.ParseInt(query.Get("limit"), 10, 64); wish.list && err == nil && asked > 0 {
		query.Set("limit", strconv.FormatInt(min(asked, g.limits.page), 10))
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

// read replaces the body of a response by what was read and checked of it.
func (g *guard) read(response *http.Response, wish wish, known bool) error {
	defer response.Body.Close()
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return breaks("the cluster answers compressed, which it was not asked for")
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusAccepted {
		return g.readError(response, response.StatusCode)
	}
	limit := g.limits.response
	switch {
	case !known:
		limit = g.limits.errorText
	case !wish.list:
		limit = g.limits.object
	}
	body, err := g.gather(response.Body, limit)
	defer g.account.give(transit, int64(len(body)))
	if err == nil && known {
		err = g.check(response, wish, body)
	}
	if err != nil {
		return err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// gather reads a body, counting what it takes while it comes.
func (g *guard) gather(from io.Reader, limit int64) ([]byte, error) {
	var body bytes.Buffer
	for {
		n, err := io.CopyN(&body, from, min(limit+1-int64(body.Len()), 32<<10))
		if over := g.account.take(transit, n); over != nil {
			return body.Bytes(), over
		}
		switch {
		case int64(body.Len()) > limit:
			return body.Bytes(), breaks("the cluster sends a response that is larger than %s", size(limit))
		case errors.Is(err, io.EOF):
			return body.Bytes(), nil
		case err != nil:
			return body.Bytes(), err
		}
	}
}

// check looks at what would become of a body.
func (g *guard) check(response *http.Response, wish wish, body []byte) error {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media != runtime.ContentTypeProtobuf {
		return breaks("the cluster does not send %s in protobuf, in which it was asked for it", wish.what)
	}
	e, err := unwrap(body)
	if err != nil {
		return err
	}
	over := breaks("the cluster sends a response that would take more than %s of memory", size(g.limits.weight))
	weight, err := g.weigh(wish, e, g.limits.weight, over)
	if err != nil || !wish.list {
		return err
	}
	return g.checkPage(response.Request.URL, wish, page(e.raw, weight))
}

func (g *guard) weigh(wish wish, e envelope, limit int64, over error) (int64, error) {
	into := wish.typeOf(e.apiVersion, e.kind)
	if into == nil {
		return 0, breaks("the cluster sends something else than the %s that it was asked for", wish.what)
	}
	s := &scale{left: limit, over: over}
	err := s.message(into, e.raw)
	return limit - s.left, err
}

// page counts the items of a list.
func page(list []byte, weight int64) listing {
	p := listing{weight: weight, pages: 1}
	for len(list) > 0 {
		token, rest, ok := takeToken(list)
		if !ok {
			break
		}
		if list = rest; token.number == 2 {
			p.objects++
		}
	}
	return p
}

// checkPage adds a page to its list: readers keep all pages until they have the last.
func (g *guard) checkPage(asked *url.URL, wish wish, p listing) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	whole := g.lists[asked.Path]
	if whole == nil || asked.Query().Get("continue") == "" {
		whole = &listing{}
		g.lists[asked.Path] = whole
	}
	whole.objects, whole.weight, whole.pages = whole.objects+p.objects, whole.weight+p.weight, whole.pages+p.pages
	switch most := g.limits.of[objects]; {
	case whole.objects > most:
		return breaks("the cluster has a list of more than %d objects of kind %s", most, wish.what)
	case whole.weight > g.limits.list:
		return breaks("the cluster has a list of kind %s that would take more than %s of memory", wish.what, size(g.limits.list))
	case whole.pages > g.limits.pages:
		return breaks("the cluster has a list of kind %s of more than %d pages", wish.what, g.limits.pages)
	}
	return nil
}

// readError replaces what a cluster says of a failure by what may be shown.
func (g *guard) readError(response *http.Response, code int) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, g.limits.errorText))
	if err != nil {
		return err
	}
	body, err = wrap(g.secrets.clean(statusOf(code, body)))
	if err != nil {
		return err
	}
	response.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// stream has a watch checked event by event.
func (g *guard) stream(response *http.Response, wish wish, cancel context.CancelCauseFunc) (*http.Response, error) {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	coding := response.Header.Get("Content-Encoding")
	if media != runtime.ContentTypeProtobuf || coding != "" && coding != "identity" {
		cancel(nil)
		_ = response.Body.Close()
		return nil, breaks("the cluster does not send %s in plain protobuf, in which it was asked for it", wish.what)
	}
	response.Body = newEvents(g, wish, response, cancel)
	return response, nil
}

// event checks one event of a watch, and returns what is handed on.
func (g *guard) event(wish wish, data []byte) ([]byte, error) {
	over := breaks("the cluster sends an event that would take more than %s of memory", size(2*g.limits.object))
	s := &scale{left: 2 * g.limits.object, over: over}
	if err := s.message(reflect.TypeFor[metav1.WatchEvent](), data); err != nil {
		return nil, err
	}
	var event metav1.WatchEvent
	if event.Unmarshal(data) != nil {
		return nil, errMalformed
	}
	e, err := unwrap(event.Object.Raw)
	if err != nil {
		return nil, err
	}
	if _, err := g.weigh(wish, e, 2*g.limits.object, over); err != nil || e.kind != "Status" {
		return data, err
	}
	status := statusOf(http.StatusInternalServerError, event.Object.Raw)
	var said metav1.Status
	if said.Unmarshal(e.raw) == nil {
		status.Code = said.Code
	}
	if event.Object.Raw, err = wrap(g.secrets.clean(status)); err != nil {
		return nil, err
	}
	return event.Marshal()
}

// fitHeader keeps the headers that clients understand.
func fitHeader(header http.Header) http.Header {
	fit := http.Header{}
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		if value := header.Get(name); value != "" && len(value) < longest {
			fit.Set(name, value)
		}
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		fit.Set("Date", date.UTC().Format(http.TimeFormat))
	}
	if text := header.Get("Retry-After"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			seconds = math.MaxUint32
		}
		fit.Set("Retry-After", strconv.FormatUint(min(seconds, longestRetry), 10))
	}
	return fit
}
