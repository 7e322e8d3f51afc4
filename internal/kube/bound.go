package kube

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// requestTimeout is longer than the timeout of any webhook, 30 seconds.
const requestTimeout = 35 * time.Second

// Bound ends every request by the config after requestTimeout, except watches.
func Bound(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
}

type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" {
		return b.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), requestTimeout)
	response, err := b.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return response, err
	}
	response.Body = boundedBody{response.Body, cancel}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
