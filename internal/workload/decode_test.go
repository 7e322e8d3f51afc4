package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/test/step/remote"
)

// says is a cluster that answers every request with these bytes.
type says []byte

func (s says) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Body: io.NopCloser(bytes.NewReader(s)),
		Header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}},
	}, nil
}

// reading is a guard of a cluster that may have pods, and what its account has.
type reading struct {
	*testing.T
	*guard
}

func newReading(t *testing.T) *reading {
	limits := limitsFor(32 << 20)
	return &reading{t, &guard{
		limits: limits, account: newLedger(limits).open("shop"), lists: map[string]*listing{},
		broken: func(err error) { t.Errorf("disconnected: %v", err) }, found: func() error { return nil }, refused: func() {},
		kinds: catalogue{"api/v1/pods": {
			kind:   schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
			object: reflect.TypeFor[corev1.Pod](), list: reflect.TypeFor[corev1.PodList](),
			partial: reflect.TypeFor[metav1.PartialObjectMetadata](), several: reflect.TypeFor[metav1.PartialObjectMetadataList](),
		}},
	}}
}

// asks has the cluster answer a request in these words.
func (r *reading) asks(ctx context.Context, query string, answer []byte) io.ReadCloser {
	r.Helper()
	target, err := url.Parse("https://cluster/api/v1/pods" + query)
	if err != nil {
		r.Fatal(err)
	}
	r.next = says(answer)
	response, err := r.RoundTrip((&http.Request{Method: http.MethodGet, URL: target}).WithContext(ctx))
	if err != nil {
		r.Fatal(err)
	}
	return response.Body
}

// counts wants at least so many bytes to be counted of each, or exactly none.
func (r *reading) counts(when string, ofDecoded, ofListed int64) {
	r.Helper()
	for what, want := range map[int]int64{decoded: ofDecoded, listed: ofListed} {
		if got := r.account.used[what]; got < want || want == 0 && got != 0 {
			r.Errorf("%s %d bytes are counted, want %d or more, or none", when, got, want)
		}
	}
	if got := r.account.used[transit]; got != 0 {
		r.Errorf("%s %d bytes are counted as under way, want none", when, got)
	}
}

const large = 100 << 10

func largePod() *corev1.Pod {
	pod := remote.Pod(0)
	pod.Labels = map[string]string{"large": strings.Repeat("x", large)}
	return pod
}

func pods(more string) []byte {
	return remote.Encoded("PodList", remote.Marshalled(&corev1.PodList{ListMeta: metav1.ListMeta{Continue: more}, Items: []corev1.Pod{*largePod()}}))
}

// What is about to be decoded counts until whoever asked has dropped it: with what it
// becomes, and the copies that are made on the way.
func TestWhatIsReadCountsUntilItIsDropped(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	body := r.asks(t.Context(), "", pods(""))
	r.counts("while it is read", 5*large, 0)
	_ = body.Close()
	_ = body.Close()
	r.counts("when it was read", 0, 0)

	ctx, end := Pass(t.Context())
	for range 2 {
		_ = r.asks(ctx, "", pods("")).Close()
	}
	r.counts("while somebody decides by it", 10*large, 0)
	end()
	end()
	r.counts("when that is done", 0, 0)
}

// Caches keep all pages until they have the last, and then watch.
func TestAListCountsUntilItsCacheHasIt(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	cache := context.WithValue(t.Context(), cacheKey{}, true)
	_ = r.asks(cache, "?limit=1", pods("b")).Close()
	r.counts("after a page", 0, 5*large)
	_ = r.asks(cache, "?limit=1&continue=b", pods("c")).Close()
	r.counts("after two pages", 0, 6*large)
	if got := r.account.used[listed]; got > 8*large {
		t.Errorf("after two pages %d bytes are counted, but the bytes of the first are gone", got)
	}
	_ = r.asks(cache, "?limit=1", pods("b")).Close()
	if got := r.account.used[listed]; got > 6*large {
		t.Errorf("after a new beginning %d bytes are counted, want one page", got)
	}
	_ = r.asks(cache, "?watch=1", nil).Close()
	r.counts("when it is watched", 0, 0)
}

// A watch has two events at the most that are in no cache yet.
func TestAnEventCountsUntilItsCacheHasIt(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	stream := r.asks(t.Context(), "?watch=1", bytes.Repeat(remote.Event("ADDED", largePod()), 5))
	for n := range 4 {
		var head [4]byte
		if _, err := io.ReadFull(stream, head[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, stream, int64(binary.BigEndian.Uint32(head[:]))); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			r.counts("after more than one event", 10*large, 0)
		}
		if got := r.account.used[decoded]; got > 12*large {
			t.Errorf("after %d events %d bytes are counted, want two events at the most", n+1, got)
		}
	}
	_ = stream.Close()
	r.counts("when the watch has ended", 0, 0)
	if _, err := stream.Read(make([]byte, 8)); err == nil {
		t.Error("an event is handed on after the end, want none")
	}
	r.counts("after the end", 0, 0)
}

// A cluster is asked again when it wants to be, and soon.
func TestWhatAClusterSaysInHeaders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "0": "0", "3": "3", "10": "10", "11": "10", "86400": "10", "-1": "10", "Fri, 31 Dec 9999 23:59:59 GMT": "10"} {
		header := http.Header{"Retry-After": {text}, "Content-Type": {strings.Repeat("x", 500)}, "Warning": {"299 - \x1b[31m"}, "Set-Cookie": {"a=b"}}
		if fit := fitHeader(header); fit.Get("Retry-After") != want || len(fit) > 1 {
			t.Errorf("Retry-After %q becomes %v, want %q and nothing else", text, fit, want)
		}
	}
	status := secrets{}.clean(metav1.Status{Details: &metav1.StatusDetails{RetryAfterSeconds: 86400}})
	if got := status.Details.RetryAfterSeconds; got != 10 {
		t.Errorf("a Status asks for %d seconds, want 10", got)
	}
}
