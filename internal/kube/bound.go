package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// RequestTimeout is longer than the timeout of any webhook, 30 seconds.
const RequestTimeout = 35 * time.Second

// NoAnswer is the error of a request that takes too long.
type NoAnswer struct{ Within time.Duration }

func (n NoAnswer) Error() string { return fmt.Sprintf("no answer within %s", n.Within) }

// Timeout implements net.Error.
func (n NoAnswer) Timeout() bool { return true }

// Is reports that a request has ended by its deadline.
func (n NoAnswer) Is(target error) bool { return target == context.DeadlineExceeded }

// Bound ends every request by the config with NoAnswer after a time, except watches, which the
// timeout of a client would end as well. 0 is no bound.
func Bound(config *rest.Config, within time.Duration) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next, within} })
}

type bounded struct {
	next   http.RoundTripper
	within time.Duration
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.within <= 0 || request.URL.Query().Get("watch") == "true" {
		return b.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), b.within, NoAnswer{b.within})
	response, err := b.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer cancel()
		return response, orNoAnswer(ctx, err)
	}
	response.Body = boundedBody{response.Body, ctx, cancel}
	return response, nil
}

// orNoAnswer returns NoAnswer if the request took too long, otherwise its error.
func orNoAnswer(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.As(cause, new(NoAnswer)) {
		return cause
	}
	return err
}

// boundedBody is the body of an answer, which has to arrive in time as well.
type boundedBody struct {
	io.ReadCloser

	ctx    context.Context
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (b boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = orNoAnswer(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
