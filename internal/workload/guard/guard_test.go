package guard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/step/remote"
)

const large = 100 << 10

func largePod() *corev1.Pod {
	pod := remote.Pod(0)
	pod.Labels = map[string]string{"large": strings.Repeat("x", large)}
	return pod
}

// serve runs a cluster that answers a list by pages, the last of which is c, and a watch by
// events.
func serve(t *testing.T) *Guard {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		answer.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		if r.URL.Query().Get("watch") != "" {
			_, _ = answer.Write(bytes.Repeat(remote.Event("ADDED", largePod()), 3))
			answer.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		list := corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{*largePod()}}
		_, _ = answer.Write(remote.Encoded("PodList", remote.Marshalled(&list)))
	}))
	t.Cleanup(server.Close)
	kinds, err := NewKinds(clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: server.URL + "/below", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	g, err := New(t.Context(), config, Options{Ledger: NewLedger(32<<20, 8<<20), Kinds: kinds, Answer: time.Minute, Message: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func (g *Guard) get(ctx context.Context, t *testing.T, query string) io.ReadCloser {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.server.String()+"/api/v1/pods?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := g.Client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(err, response)
	}
	return response.Body
}

// counts waits until so many bytes count, or none.
func (g *Guard) counts(t *testing.T, when string, least, most int64) {
	t.Helper()
	patience.Eventually(t, fmt.Sprintf("%d to %d bytes %s", least, most, when), func(context.Context) (string, bool) {
		l := g.account.ledger
		l.mu.Lock()
		defer l.mu.Unlock()
		taken := l.taken - l.cluster/smallShare
		return fmt.Sprintf("%d bytes", taken), taken >= least && taken <= most
	})
}

// idle waits until nothing is decoded.
func (g *Guard) idle(t *testing.T, when string) {
	t.Helper()
	l := g.account.ledger
	patience.Eventually(t, "no memory for messages "+when, func(context.Context) (string, bool) {
		if !l.decoding.TryAcquire(l.total / decodeShare) {
			return "it is in use", false
		}
		l.decoding.Release(l.total / decodeShare)
		return "", true
	})
}

// A cache keeps all pages until it has the last one, and then watches.
func TestListCountsUntilItsCacheHasIt(t *testing.T) {
	t.Parallel()
	g := serve(t)
	page := func(query string) { _ = g.get(t.Context(), t, query).Close() }
	page("limit=1")
	g.counts(t, "after a page", 2*large, 5*large)
	page("limit=1&continue=b")
	g.counts(t, "after two pages", 4*large, 10*large)
	page("limit=1")
	g.counts(t, "after a new beginning", 2*large, 5*large)
	watch := g.get(t.Context(), t, "watch=1")
	g.counts(t, "when it is watched", 0, 0)
	_ = watch.Close()
}

// A Machine's pass has what it lists until its context ends.
func TestListCountsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	g := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	_ = g.get(ctx, t, "fieldSelector=spec.nodeName%3Dn").Close()
	g.counts(t, "while a pass decides by it", 2*large, 5*large)
	cancel()
	g.counts(t, "after the pass", 0, 0)
}

func TestEventCountsUntilTheNextIsRead(t *testing.T) {
	t.Parallel()
	g := serve(t)
	watch := g.get(t.Context(), t, "watch=1")
	event := int64(len(remote.Event("ADDED", largePod())))
	if _, err := io.CopyN(io.Discard, watch, 3*event); err != nil {
		t.Fatal(err)
	}
	if l := g.account.ledger; l.decoding.TryAcquire(l.total / decodeShare) {
		l.decoding.Release(l.total / decodeShare)
		t.Error("nothing counts while the last event is decoded")
	}
	_ = watch.Close()
	g.idle(t, "when the watch has ended")
	g.counts(t, "when the watch has ended", 0, 0)
}

// A cluster is asked again when it wants to be, and soon.
func TestHeadersOfAClusterAreBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "3": "3", "10": "10", "11": "10", "-1": "10", "Fri, 31 Dec 9999 23:59:59 GMT": "10"} {
		header := http.Header{"Retry-After": {text}, "Content-Type": {strings.Repeat("x", 500)}, "Warning": {"299 - \x1b[31m"}, "Set-Cookie": {"a=b"}}
		if fit := fitHeader(header); fit.Get("Retry-After") != want || len(fit) > 1 {
			t.Errorf("Retry-After %q becomes %v, want %q and nothing else", text, fit, want)
		}
	}
}
