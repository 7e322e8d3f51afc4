package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	program = "v1.37.1/bin/linux/amd64/kube-apiserver"
	content = "#!/bin/sh\necho kube-apiserver\n"
)

func sum(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

// serve returns a source on loopback that answers with a handler, and the number of requests.
func serve(t *testing.T, handler http.HandlerFunc) (Source, *atomic.Int32) {
	t.Helper()
	requests := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	s := Official()
	s.Base, s.Client, s.Pause = server.URL+"/", server.Client(), 0
	s.Sums = map[string]string{program: sum(content)}
	return s, requests
}

// fetch fetches the program of the tests and returns where it should be.
func fetch(t *testing.T, s Source, progress *Progress) (string, error) {
	t.Helper()
	file, ok := s.File("1.37.1", Platform{OS: "linux", Arch: "amd64"}, "kube-apiserver")
	if !ok {
		t.Fatal("the program has no checksum")
	}
	path := filepath.Join(t.TempDir(), file.Name())
	return path, s.Fetch(t.Context(), file, path, progress)
}

func wantNothingAt(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v, want that it does not exist", path, err)
	}
}

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// cut promises a whole program and closes the connection in the middle of it.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	_, _ = w.Write([]byte(content[:10]))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// stall sends the beginning of a program and then nothing until the client leaves.
func stall(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(content[:10]))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestFetchKeepsAProgramWithTheRightChecksum(t *testing.T) {
	asked := ""
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		answer(content)(w, r)
	})
	progress := &Progress{}
	path, err := fetch(t, s, progress)
	if err != nil {
		t.Fatal(err)
	}
	if asked != "/"+program {
		t.Errorf("requested %s, want /%s", asked, program)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("the file has %q, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the file is not executable: %v", err)
	}
	if got := progress.done.Load(); got != int64(len(content)) {
		t.Errorf("progress is %d bytes, want %d", got, len(content))
	}
}

func TestFetchDiscardsAProgramWithAnotherChecksum(t *testing.T) {
	const tampered = "#!/bin/sh\necho something else\n"
	s, requests := serve(t, answer(tampered))
	path, err := fetch(t, s, &Progress{})
	want := s.Base + program + " has SHA-256 " + sum(tampered) + ", expected " + sum(content) + "; the file was discarded"
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
	if _, ok := errors.AsType[*ChecksumError](err); !ok || errors.Is(err, ErrUnavailable) {
		t.Errorf("error is a %T, want a ChecksumError, and not that the file is unavailable", err)
	}
	wantNothingAt(t, path)
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1: the next answer is no better", got)
	}
}

func TestFetchReportsThatAProgramIsUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		handler  http.HandlerFunc
		change   func(*Source)
		reason   string
		requests int32
	}{
		"the connection breaks": {handler: cut, reason: "unexpected EOF", requests: attempts},
		"the server stalls": {
			handler: stall, change: func(s *Source) { s.Stall = 20 * time.Millisecond },
			reason: "the server has stopped sending for 20ms", requests: attempts,
		},
		"the server never answers": {
			handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			change:  func(s *Source) { s.Stall = 20 * time.Millisecond },
			reason:  "the server has stopped sending for 20ms", requests: attempts,
		},
		"the server is overloaded": {
			handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
			reason:  "the server answers 503 Service Unavailable", requests: attempts,
		},
		"the program does not exist": {handler: http.NotFound, reason: "the server answers 404 Not Found", requests: 1},
		"the program is too large": {
			handler: answer(content), change: func(s *Source) { s.MaxSize = 10 },
			reason: "the file is larger than 10 bytes", requests: 1,
		},
		"a program of unknown size is too large": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				answer(content)(w, r)
			},
			change: func(s *Source) { s.MaxSize = 10 },
			reason: "the file is larger than 10 bytes", requests: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, requests := serve(t, tt.handler)
			if tt.change != nil {
				tt.change(&s)
			}
			path, err := fetch(t, s, &Progress{})
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("error is %v, want that the program is unavailable: %s", err, tt.reason)
			}
			wantNothingAt(t, path)
			if got := requests.Load(); got != tt.requests {
				t.Errorf("%d requests, want %d", got, tt.requests)
			}
		})
	}
}

func TestFetchWithoutANetworkReportsThatAProgramIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	s, _ := serve(t, http.NotFound)
	s.Base = server.URL + "/"
	server.Close() // its port is closed now
	path, err := fetch(t, s, &Progress{})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error is %v, want that the program is unavailable: connection refused", err)
	}
	if strings.Count(err.Error(), s.Base) != 1 {
		t.Errorf("error names the URL more than once: %v", err)
	}
	wantNothingAt(t, path)
}

func TestFetchSucceedsAfterABrokenConnection(t *testing.T) {
	var requests *atomic.Int32
	s, requests := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Load() == 1 {
			cut(w, r)
		}
		answer(content)(w, r)
	})
	path, err := fetch(t, s, &Progress{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("the file has %q, %v", got, err)
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, requests := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	path := filepath.Join(t.TempDir(), "kube-apiserver")
	err := s.Fetch(ctx, File{Path: program, SHA256: sum(content)}, path, &Progress{})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("error is %v, want only that the context was cancelled", err)
	}
	wantNothingAt(t, path)
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

func TestFetchReportsAFolderThatDoesNotExist(t *testing.T) {
	s, requests := serve(t, answer(content))
	err := s.Fetch(t.Context(), File{Path: program, SHA256: sum(content)}, filepath.Join(t.TempDir(), "none", "file"), &Progress{})
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrUnavailable) {
		t.Errorf("error is %v, want that of the file system", err)
	}
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}
