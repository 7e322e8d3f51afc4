package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"sync"
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
	ready  []byte
	memory *eventMemory
	// late is true if an event did not end in time.
	late atomic.Bool
}

func newEvents(g *guard, wish wish, response *http.Response, cancel context.CancelCauseFunc) *eventStream {
	return &eventStream{
		guard: g, wish: wish, memory: &eventMemory{account: g.account}, ctx: response.Request.Context(), body: response.Body, cancel: cancel,
		pace: flowcontrol.NewTokenBucketRateLimiter(g.limits.events, int(g.limits.events)),
	}
}

// Close ends the watch.
func (e *eventStream) Close() error {
	e.cancel(nil)
	e.memory.settle(0)
	return e.body.Close()
}

// Read hands on events that were checked.
func (e *eventStream) Read(into []byte) (int, error) {
	if len(e.ready) == 0 {
		// Who asks for one more has decoded the last one, and its cache has the one before.
		e.memory.settle(1)
		if err := e.fetch(); err != nil {
			e.memory.settle(0)
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
	event, err := e.weighed(frame)
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

// weighed checks an event when there is memory for it.
func (e *eventStream) weighed(frame []byte) ([]byte, error) {
	e.memory.next()
	if err := e.memory.reserve(e.ctx, copies*int64(len(frame))); err != nil {
		return nil, err
	}
	event, weight, err := e.guard.event(e.wish, frame)
	if err != nil {
		return nil, err
	}
	return event, e.memory.reserve(e.ctx, weight)
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

// eventMemory is reserved for the events of a watch that were handed on, and are not in a
// cache yet, each.
type eventMemory struct {
	account *account

	mu     sync.Mutex
	events []int64
}

// next begins to count for one more event.
func (m *eventMemory) next() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, 0)
}

// reserve adds to what the last event takes.
func (m *eventMemory) reserve(ctx context.Context, amount int64) error {
	if err := m.account.reserve(ctx, decoded, amount); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.events) == 0 { // The watch has ended meanwhile.
		m.account.give(decoded, amount)
		return errEnded
	}
	m.events[len(m.events)-1] += amount
	return nil
}

// settle gives back the memory for all events but the last few.
func (m *eventMemory) settle(last int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.events) > last {
		m.account.give(decoded, m.events[0])
		m.events = m.events[1:]
	}
}
