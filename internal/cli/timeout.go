package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// connectWithin bounds the connection to a cluster, and answerWithin a request unless
	// --request-timeout is set. An API server may wait ten seconds for a webhook.
	connectWithin = 5 * time.Second
	answerWithin  = 20 * time.Second
	// suggestWithin bounds the completion of a word.
	suggestWithin = 3 * time.Second
)

// noAnswer is the error of a request that takes too long.
type noAnswer struct{ within time.Duration }

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within %s", n.within) }

// Timeout implements net.Error.
func (n noAnswer) Timeout() bool { return true }

// hurried ends requests that take too long, except watches, which the timeout of a client would
// end as well.
type hurried struct {
	http.RoundTripper
	within time.Duration
}

// RoundTrip implements http.RoundTripper.
func (h hurried) RoundTrip(request *http.Request) (*http.Response, error) {
	if h.within <= 0 || request.URL.Query().Has("watch") {
		return h.RoundTripper.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), h.within, noAnswer{h.within})
	answer, err := h.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer cancel()
		return nil, late(ctx, err)
	}
	answer.Body = hurriedBody{answer.Body, ctx, cancel}
	return answer, nil
}

// late returns noAnswer if the request took too long, otherwise its error.
func late(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.As(cause, new(noAnswer)) {
		return cause
	}
	return err
}

// hurriedBody is the body of an answer, which has to arrive in time as well.
type hurriedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (b hurriedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = late(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b hurriedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
