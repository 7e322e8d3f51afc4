package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/test/patience"
)

// reviewOf is the request of an API server with an object of so many bytes.
func reviewOf(t *testing.T, size int) *http.Request {
	t.Helper()
	object, err := json.Marshal(strings.Repeat("u", size))
	must(t, err)
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "beef", Name: "uid", Namespace: "shop", Object: runtime.RawExtension{Raw: object},
	}}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	must(t, err)
	return httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate/evictions?timeout=2s", strings.NewReader(string(body)))
}

// answeredBy returns the answer of a handler, and "let in" if that is of the test.
func answeredBy(t *testing.T, handler http.Handler, request *http.Request) *admissionv1.AdmissionResponse {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	review := admissionv1.AdmissionReview{}
	must(t, json.Unmarshal(answer.Body.Bytes(), &review))
	return review.Response
}

// An API server that gets no answer, or one to something else, admits an eviction.
func TestAReviewForWhichThereIsNoRoomIsRefused(t *testing.T) {
	t.Parallel()
	held, inside := make(chan struct{}), make(chan struct{})
	memory := newReviewMemory()
	slow := reviewLimit{http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-held }), memory, wait}
	reads := reviewLimit{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"response":{"uid":"beef","allowed":true}}`))
	}), memory, wait}
	for range 2 {
		go slow.ServeHTTP(httptest.NewRecorder(), reviewOf(t, 6<<20))
		<-inside
	}
	defer close(held)
	const full, large = "too many concurrent admission reviews, try again", "the admission review is larger than the supported 7 MiB"
	for name, test := range map[string]struct {
		size  int
		limit reviewLimit
		want  string
	}{
		"a small one":                    {1 << 10, reads, ""},
		"one for which there is room":    {1 << 20, reads, ""},
		"one for which there is no room": {6 << 20, reads, full},
		"one without bounds":             {8 << 20, reads, large},
	} {
		answer := answeredBy(t, test.limit, reviewOf(t, test.size))
		if answer.UID != types.UID("beef") || answer.Allowed != (test.want == "") || !answer.Allowed && answer.Result.Message != test.want {
			t.Errorf("%s: answer %+v, want %q", name, answer, test.want)
		}
	}
	// A pod of a DaemonSet starts.
	letting := reviewLimit{reads, memory, letStart}
	if answer := answeredBy(t, letting, reviewOf(t, 8<<20)); answer.UID != "beef" || !answer.Allowed || len(answer.Warnings) != 1 {
		t.Errorf("a pod of a DaemonSet is answered %+v, want it to start with a warning", answer)
	}
}

// One who reaches the port begins reviews and does not end them.
func TestAReviewThatDripsGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	webhooks := httptest.NewUnstartedServer((&Server{}).answer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, err := io.ReadAll(request.Body)
		read <- err
	})))
	webhooks.EnableHTTP2 = true
	webhooks.StartTLS()
	defer webhooks.Close()
	body, drips := io.Pipe()
	defer func() { must(t, drips.Close()) }()
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, webhooks.URL+"?timeout=1s", body)
		if err != nil {
			t.Errorf("make the request: %v", err)
			return
		}
		if response, err := webhooks.Client().Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	_, err := drips.Write([]byte("{"))
	must(t, err)
	bound, stop := patience.Context(t)
	defer stop()
	select {
	case err := <-read:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the review ended with %v, want its deadline", err)
		}
	case <-bound.Done():
		t.Error("the review is being read for ever")
	}
}

// What is done for a caller ends with it, and before it stops listening. Only the end of the
// manager ends nothing.
func TestAnAnswerIsMadeWhileItsCallerListens(t *testing.T) {
	for name, test := range map[string]struct {
		timeout string
		gone    bool
		ending  bool
		want    time.Duration
	}{
		"an eviction":                        {timeout: "2s", want: 1500 * time.Millisecond},
		"a caller that does not say":         {want: 7500 * time.Millisecond},
		"a caller that waits for ever":       {timeout: "1h", want: 7500 * time.Millisecond},
		"a caller that says nothing sound":   {timeout: "-1s", want: 7500 * time.Millisecond},
		"a caller that goes":                 {timeout: "10s", gone: true, want: time.Second},
		"a manager that ends while it reads": {timeout: "10s", gone: true, ending: true, want: 7500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, begin := &Server{}, time.Now()
				caller, goes := context.WithCancel(t.Context())
				request := httptest.NewRequestWithContext(caller, http.MethodPost, "/validate/evictions?timeout="+test.timeout, nil)
				time.AfterFunc(time.Second, func() {
					server.ending.Store(test.ending)
					if test.gone {
						goes()
					}
				})
				server.answer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
					<-request.Context().Done()
				})).ServeHTTP(httptest.NewRecorder(), request)
				if took := time.Since(begin); took != test.want {
					t.Errorf("it was worked on for %s, want %s", took, test.want)
				}
				goes()
			})
		})
	}
}
