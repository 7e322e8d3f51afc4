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

type recorded struct{ last context.Context }

func (r *recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	r.last = request.Context()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("all of it"))}, nil
}

// sendBounded sends a request by a config that is bound, and returns who got it and its answer.
func sendBounded(t *testing.T, method, query string) (*recorded, *http.Response) {
	t.Helper()
	var config rest.Config
	Bound(&config, RequestTimeout)
	server := &recorded{}
	request, err := http.NewRequestWithContext(t.Context(), method, "https://example.com/api/v1/pods"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := config.WrapTransport(server).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return server, response
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
			server, response := sendBounded(t, test.method, test.query)
			until, bounded := server.last.Deadline()
			if bounded != test.bounded || bounded && time.Until(until) > RequestTimeout {
				t.Errorf("bounded %t, until %s", bounded, until)
			}
			text, err := io.ReadAll(response.Body)
			if string(text) != "all of it" || server.last.Err() != nil {
				t.Errorf("read %q, %v, and the request has ended by %v", text, err, server.last.Err())
			}
			_ = response.Body.Close()
			if ended := server.last.Err() != nil; ended != test.bounded {
				t.Errorf("the time of a request that is over was given back: %t", ended)
			}
		})
	}
}
