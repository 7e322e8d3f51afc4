package guard

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventRate limits the events of a watch per second. Each eventBytes of an event
// count as one.
const eventRate, eventBytes = 5000, 16 << 10

// events is the body of a watch: frames of four bytes with the length of an event, and the
// event. A frame is returned when it is complete and checked.
type events struct {
	exchange
	guard   *Guard
	body    io.ReadCloser
	limiter *rate.Limiter
	// ready is the rest of a frame that was not read yet, release frees its memory.
	ready   []byte
	release func()
}

// watch checks a watch event by event. Its cache has its list.
func (g *Guard) watch(e exchange, response *http.Response) error {
	g.forget(e.list())
	if err := protobufOnly(e, response); err != nil {
		return errors.Join(err, response.Body.Close())
	}
	response.Body = &events{exchange: e, guard: g, body: response.Body, limiter: rate.NewLimiter(eventRate, eventRate), release: func() {}}
	return nil
}

// Close ends the watch.
func (e *events) Close() error {
	e.cancel(nil)
	return e.body.Close()
}

// Read returns checked events.
func (e *events) Read(into []byte) (int, error) {
	if len(e.ready) == 0 {
		e.release() // The last event was decoded, or its reader would not read on.
		if err := e.next(); err != nil {
			if errors.Is(context.Cause(e.ctx), errLate) {
				err = breaks("an event took longer than %s", e.guard.options.Message)
			}
			if breachIn(err) != nil {
				e.guard.Report(err)
			}
			return 0, err
		}
	}
	n := copy(into, e.ready)
	e.ready = e.ready[n:]
	return n, nil
}

// next reads an event, checks it and waits until it may be decoded.
func (e *events) next() error {
	frame, err := e.frame()
	defer func() { _ = e.guard.account.take(-buffers * int64(len(frame))) }()
	if err != nil {
		return err
	}
	event, weight, err := e.check(frame)
	if err != nil {
		return err
	}
	if err := e.limiter.WaitN(e.ctx, 1+len(frame)/eventBytes); err != nil {
		return io.EOF
	}
	e.release, err = e.guard.account.decode(e.ctx, weight+copies*int64(len(event)), e.guard.options.Message)
	if err != nil {
		return err
	}
	e.ready = append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
	return nil
}

// frame reads an event. It may begin at any time, but not take long.
func (e *events) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(e.body, head[:1]); err != nil {
		return nil, err
	}
	late := time.AfterFunc(e.guard.options.Message, func() { e.cancel(errLate) })
	defer late.Stop()
	if _, err := io.ReadFull(e.body, head[1:]); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > messageBytes {
		return nil, breaks("the cluster sends an event of %s that is larger than %s", e.Resource, size(messageBytes))
	}
	frame, err := e.guard.receive(io.LimitReader(e.body, length))
	if err == nil && int64(len(frame)) < length {
		err = io.ErrUnexpectedEOF
	}
	return frame, err
}

// check returns an event as clients get it, and how much memory it takes.
func (e *events) check(frame []byte) (event []byte, weight int64, err error) {
	var raw metav1.WatchEvent
	if raw.Unmarshal(frame) != nil {
		return nil, 0, errMalformed
	}
	weight, object, err := e.guard.weigh(e.Resource, raw.Object.Raw, 2*messageBytes)
	if err != nil || object.Kind != "Status" {
		return frame, weight, err
	}
	status := metav1.Status{}
	if status.Unmarshal(object.Raw) != nil {
		return nil, 0, errMalformed
	}
	if raw.Object.Raw, err = encode(e.guard.secrets.clean(status)); err != nil {
		return nil, 0, err
	}
	event, err = raw.Marshal()
	return event, weight, err
}
