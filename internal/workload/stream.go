package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// eventStream is the body of a watch: frames of four bytes that say how long an event is,
// and the event. A frame is handed on when it is complete and checked.
type eventStream struct {
	guard  *guard
	wish   wish
	ctx    context.Context
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	pace   flowcontrol.RateLimiter
	// ready is what of a checked frame was not handed on yet.
	ready []byte
	// late is true if an event did not end in time.
	late atomic.Bool
}

func newEvents(g *guard, wish wish, response *http.Response, cancel context.CancelCauseFunc) *eventStream {
	return &eventStream{
		guard: g, wish: wish, ctx: response.Request.Context(), body: response.Body, cancel: cancel,
		pace: flowcontrol.NewTokenBucketRateLimiter(g.limits.events, int(g.limits.events)),
	}
}

// Close ends the watch.
func (e *eventStream) Close() error {
	e.cancel(nil)
	return e.body.Close()
}

// Read hands on events that were checked.
func (e *eventStream) Read(into []byte) (int, error) {
	if len(e.ready) == 0 {
		if err := e.fetch(); err != nil {
			if breachIn(err) != nil {
				e.guard.broken(err)
			}
			return 0, err
		}
	}
	n := copy(into, e.ready)
	e.ready = e.ready[n:]
	return n, nil
}

func (e *eventStream) fetch() error {
	if err := e.guard.found(); err != nil {
		return err
	}
	frame, err := e.frame()
	defer e.guard.account.give(transit, int64(len(frame)))
	if err != nil {
		if e.late.Load() {
			return breaks("an event took longer than %s", e.guard.limits.time)
		}
		return err
	}
	event, err := e.guard.event(e.wish, frame)
	if err != nil {
		return err
	}
	for range 1 + len(frame)/eventBytes {
		if e.pace.Wait(e.ctx) != nil {
			return io.EOF
		}
	}
	e.ready = append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(event)), uint32(len(event))), event...)
	return nil
}

// frame reads one event. Nobody knows when it begins; from then on it has to hurry.
func (e *eventStream) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(e.body, head[:1]); err != nil {
		return nil, err
	}
	hurry := time.AfterFunc(e.guard.limits.time, func() {
		e.late.Store(true)
		e.cancel(context.DeadlineExceeded)
	})
	defer hurry.Stop()
	if _, err := io.ReadFull(e.body, head[1:]); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > e.guard.limits.object {
		return nil, breaks("the cluster sends an event of kind %s that is larger than %s", e.wish.what, size(e.guard.limits.object))
	}
	var frame bytes.Buffer
	for int64(frame.Len()) < length {
		n, err := io.CopyN(&frame, e.body, min(length-int64(frame.Len()), 32<<10))
		if over := e.guard.account.take(transit, n); over != nil {
			return frame.Bytes(), over
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return frame.Bytes(), err
		}
	}
	return frame.Bytes(), nil
}
