package kube

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// recorded keeps the context of the last request.
type recorded struct{ last context.Context }

func (r *recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	r.last = request.Context()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("all of it"))}, nil
}

func TestBoundEndsEveryRequestButWatches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, query string
		bounded       bool
	}{
		"write":     {method: http.MethodPatch, bounded: true},
		"eviction":  {method: http.MethodPost, bounded: true},
		"read":      {method: http.MethodGet, bounded: true},
		"no watch":  {method: http.MethodGet, query: "?watch=false", bounded: true},
		"watch":     {method: http.MethodGet, query: "?watch=true&resourceVersion=1"},
		"watchlist": {method: http.MethodGet, query: "?sendInitialEvents=true&watch=true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var config rest.Config
			Bound(&config)
			server := &recorded{}
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://example.com/api/v1/pods"+test.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := config.WrapTransport(server).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			until, bounded := server.last.Deadline()
			if bounded != test.bounded || bounded && time.Until(until) > requestTimeout {
				t.Errorf("bounded %t, until %s", bounded, until)
			}
			if text, err := io.ReadAll(response.Body); err != nil || string(text) != "all of it" || server.last.Err() != nil {
				t.Errorf("read %q, %v, and the request has ended by %v", text, err, server.last.Err())
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if ended := server.last.Err() != nil; ended != test.bounded {
				t.Errorf("the time of a request that is over was given back: %t", ended)
			}
		})
	}
}
