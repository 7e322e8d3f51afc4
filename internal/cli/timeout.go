package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// connectWithin is how long the connection to a cluster may take, and answerWithin a
	// request to it, unless --request-timeout says otherwise: a person waits. An API server
	// may wait ten seconds for a webhook.
	connectWithin = 5 * time.Second
	answerWithin  = 20 * time.Second
	// suggestWithin is how long a shell waits that completes a word.
	suggestWithin = 3 * time.Second
)

// dialer gives up on a cluster that is switched off sooner than the system does.
func dialer(within time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: within, KeepAlive: 30 * time.Second}).DialContext
}

// noAnswer is what becomes of a request that takes too long.
type noAnswer struct{ within time.Duration }

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within %s", n.within) }

// Timeout says of what sort the error is, as those of package net do.
func (n noAnswer) Timeout() bool { return true }

// hurried ends requests that take too long, other than watches: these last as long as
// somebody looks. A client with a timeout of its own would end them, too.
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

// late is the error of a request, which is that it took too long if it did.
func late(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.As(cause, new(noAnswer)) {
		return cause
	}
	return err
}

// hurriedBody is the rest of an answer, which has to come in time as well.
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
