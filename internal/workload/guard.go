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
	// broken ends the connection, found returns why it has ended. refused is told that a
	// request was refused to its user.
	broken  func(error)
	refused func()
	found   func() error

	mu    sync.Mutex
	lists map[string]*listing
}

// listing is a list that is being read, page by page. What was reserved for it is given
// back when its cache has got it.
type listing struct{ objects, pages, reserved, copied int64 }

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
		g.heed(response.StatusCode, known || request.Method != http.MethodGet)
		response.Header = fitHeader(response.Header)
		response.Status, response.Trailer = fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)), nil
		if wish.watch && response.StatusCode == http.StatusOK {
			late.Stop()
			g.forget(request.URL.Path) // A cache watches when it has got its list.
			return g.stream(response, wish, cancel)
		}
		err = g.read(response, wish, asked{known, late})
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

// heed tells of an answer for want of a right. Who may not ask whether the cluster is ready,
// which is no object, may do everything else.
func (g *guard) heed(code int, object bool) {
	if code == http.StatusUnauthorized || code == http.StatusForbidden && object {
		g.refused()
	}
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

// asked is what is known of a request.
type asked struct {
	// known is true if it is for a kind that we read.
	known bool
	// late ends it unless it is stopped.
	late *time.Timer
}

// read replaces the body of a response by what was read and checked of it.
func (g *guard) read(response *http.Response, wish wish, asked asked) error {
	defer response.Body.Close()
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return breaks("the cluster answers compressed, which it was not asked for")
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusAccepted {
		return g.readError(response, response.StatusCode)
	}
	limit := g.limits.response
	switch {
	case !asked.known:
		limit = g.limits.errorText
	case !wish.list:
		limit = g.limits.object
	}
	body, err := g.gather(response.Body, limit)
	defer g.account.give(transit, int64(len(body)))
	asked.late.Stop() // From here on it waits for our memory only.
	release := func() {}
	if err == nil && asked.known {
		release, err = g.check(response, wish, body)
	}
	if err != nil {
		return err
	}
	response.Body, response.ContentLength = &weighed{Reader: bytes.NewReader(body), release: sync.OnceFunc(release)}, int64(len(body))
	return nil
}

// weighed is a body for which memory is reserved until it is closed.
type weighed struct {
	io.Reader
	release func()
}

// Close gives the memory back.
func (w *weighed) Close() error {
	w.release()
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

// check looks at what would become of a body, and reserves the memory for it. What is
// returned gives that back, unless it is kept for longer than the body is read.
func (g *guard) check(response *http.Response, wish wish, body []byte) (release func(), err error) {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media != runtime.ContentTypeProtobuf {
		return nil, breaks("the cluster does not send %s in protobuf, in which it was asked for it", wish.what)
	}
	e, err := unwrap(body)
	if err != nil {
		return nil, err
	}
	over := breaks("the cluster sends a response that would take more than %s of memory", size(g.limits.weight))
	weight, err := g.weigh(wish, e, g.limits.weight, over)
	if err != nil {
		return nil, err
	}
	ctx, copied := response.Request.Context(), copies*int64(len(body))
	pass := passOf(ctx)
	if wish.list && ctx.Value(cacheKey{}) != nil {
		return func() {}, g.reservePage(response.Request, wish, page(e.raw), weight, copied)
	}
	if err := g.account.reserve(ctx, decoded, weight+copied); err != nil {
		return nil, err
	}
	release = func() { g.account.give(decoded, weight+copied) }
	if pass != nil {
		pass.add(release)
		return func() {}, nil
	}
	return release, nil
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
func page(list []byte) (items int64) {
	for len(list) > 0 {
		token, rest, ok := takeToken(list)
		if !ok {
			break
		}
		if list = rest; token.number == 2 {
			items++
		}
	}
	return items
}

// reservePage reserves the memory for one more page of a list that a cache reads, which
// keeps all pages until it has the last. Nobody else asks for the list meanwhile.
func (g *guard) reservePage(request *http.Request, wish wish, items, weight, copied int64) error {
	if request.URL.Query().Get("continue") == "" {
		g.forget(request.URL.Path)
	}
	whole := g.listing(request.URL.Path)
	g.account.give(listed, whole.copied) // The page before was decoded.
	whole.reserved, whole.copied = whole.reserved-whole.copied, 0
	whole.objects, whole.pages = whole.objects+items, whole.pages+1
	switch most := g.limits.of[objects]; {
	case whole.objects > most:
		return breaks("the cluster has a list of more than %d objects of kind %s", most, wish.what)
	case whole.pages > g.limits.pages:
		return breaks("the cluster has a list of kind %s of more than %d pages", wish.what, g.limits.pages)
	}
	if err := g.account.reserve(request.Context(), listed, weight+copied); err != nil {
		return err
	}
	whole.reserved, whole.copied = whole.reserved+weight+copied, copied
	return nil
}

// listing is the list that is being read at a path.
func (g *guard) listing(path string) *listing {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lists[path] == nil {
		g.lists[path] = &listing{}
	}
	return g.lists[path]
}

// forget gives back what was reserved for a list.
func (g *guard) forget(path string) {
	g.mu.Lock()
	whole := g.lists[path]
	delete(g.lists, path)
	g.mu.Unlock()
	if whole != nil {
		g.account.give(listed, whole.reserved)
	}
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

// event checks one event of a watch, and returns what is handed on and what becomes of it.
func (g *guard) event(wish wish, data []byte) (checked []byte, weight int64, err error) {
	over := breaks("the cluster sends an event that would take more than %s of memory", size(2*g.limits.object))
	s := &scale{left: 2 * g.limits.object, over: over}
	if err := s.message(reflect.TypeFor[metav1.WatchEvent](), data); err != nil {
		return nil, 0, err
	}
	var event metav1.WatchEvent
	if event.Unmarshal(data) != nil {
		return nil, 0, errMalformed
	}
	e, err := unwrap(event.Object.Raw)
	if err != nil {
		return nil, 0, err
	}
	if weight, err = g.weigh(wish, e, 2*g.limits.object, over); err != nil || e.kind != "Status" {
		return data, weight, err
	}
	status := statusOf(http.StatusInternalServerError, event.Object.Raw)
	var said metav1.Status
	if said.Unmarshal(e.raw) == nil {
		status.Code = said.Code
	}
	if event.Object.Raw, err = wrap(g.secrets.clean(status)); err != nil {
		return nil, 0, err
	}
	checked, err = event.Marshal()
	return checked, weight, err
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
