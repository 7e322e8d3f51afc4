package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"
)

// attempts bounds the requests of one file.
const attempts = 3

// ErrUnavailable reports that a file did not arrive.
var ErrUnavailable = errors.New("cannot download")

// errStalled is the reason for which a request is cancelled that has become silent.
var errStalled = errors.New("the server has stopped sending")

// ChecksumError reports that a file arrived complete, but is not the pinned one.
type ChecksumError struct {
	// URL of the source.
	URL string
	// Want and Got are SHA-256 hashes.
	Want, Got string
}

// Error names the file and both hashes.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s has SHA-256 %s, expected %s; the file was discarded", e.URL, e.Got, e.Want)
}

// Progress counts the bytes of a file that have arrived. It may be read while the file is fetched.
type Progress struct{ done, size atomic.Int64 }

// String reports the progress in megabytes.
func (p *Progress) String() string {
	const mega = 1_000_000
	done, size := p.done.Load()/mega, p.size.Load()/mega
	if size <= 0 {
		return fmt.Sprintf("%d MB", done)
	}
	return fmt.Sprintf("%d of %d MB", done, size)
}

// Fetch downloads a file to a path and makes it executable. On any error, nothing is at that path.
//
// Errors: a *ChecksumError, an error that wraps ErrUnavailable, that of the context, or one of the
// file system.
func (s Source) Fetch(ctx context.Context, f File, path string, progress *Progress) error {
	for attempt := 1; ; attempt++ {
		err := s.fetch(ctx, f, path, progress)
		if err == nil {
			return nil
		}
		if removeErr := os.Remove(path); !errors.Is(removeErr, os.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failed, ok := errors.AsType[*unavailableError](err); !ok || failed.final || attempt == attempts {
			return err
		}
		select {
		case <-time.After(s.Pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unavailableError is an ErrUnavailable with its reason.
type unavailableError struct {
	url   string
	cause error
	final bool // another attempt will get the same answer
}

func (e *unavailableError) Error() string {
	return fmt.Sprintf("%s %s: %s", ErrUnavailable, e.url, e.cause)
}

func (e *unavailableError) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

// fetch makes one attempt.
func (s Source) fetch(ctx context.Context, f File, path string, progress *Progress) error {
	from := s.Base + f.Path
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(s.Stall, func() { cancel(fmt.Errorf("%w for %s", errStalled, s.Stall)) })
	defer watchdog.Stop()
	body, err := s.open(ctx, from, progress)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()

	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	hash := sha256.New()
	arrived := &arrival{from: io.LimitReader(body, s.MaxSize+1), then: func(n int) {
		watchdog.Reset(s.Stall)
		progress.done.Add(int64(n))
	}}
	n, err := io.Copy(io.MultiWriter(file, hash), arrived)
	if err = errors.Join(err, file.Close()); err != nil && arrived.err == nil {
		return err // of the file system
	}
	switch {
	case arrived.err != nil:
		return &unavailableError{url: from, cause: reason(ctx, arrived.err)}
	case n > s.MaxSize:
		return s.tooLarge(from)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != f.SHA256 {
		return &ChecksumError{URL: from, Want: f.SHA256, Got: got}
	}
	return nil
}

// open requests a URL and returns what the server sends.
func (s Source) open(ctx context.Context, from string, progress *Progress) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return nil, &unavailableError{url: from, cause: reason(ctx, err)}
	}
	progress.done.Store(0)
	progress.size.Store(response.ContentLength)
	switch {
	case response.StatusCode != http.StatusOK:
		err = &unavailableError{
			url: from, cause: fmt.Errorf("the server answers %s", response.Status),
			final: response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests,
		}
	case response.ContentLength > s.MaxSize:
		err = s.tooLarge(from)
	default:
		return response.Body, nil
	}
	_ = response.Body.Close()
	return nil, err
}

func (s Source) tooLarge(from string) error {
	return &unavailableError{url: from, cause: fmt.Errorf("the file is larger than %d bytes", s.MaxSize), final: true}
}

// reason returns why a request failed: its own error, or that of the watchdog.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return cause
	}
	// The URL is part of the message already.
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// arrival reads from a server, and keeps its error apart from those of the file system.
type arrival struct {
	from io.Reader
	then func(n int)
	err  error
}

func (a *arrival) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	a.then(n)
	if !errors.Is(err, io.EOF) {
		a.err = err
	}
	return n, err
}
