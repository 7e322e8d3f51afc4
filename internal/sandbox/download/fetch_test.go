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
	s.Base, s.Client = server.URL+"/", server.Client()
	s.Sums = map[string]string{program: sum(content)}
	return s, requests
}

// fetch fetches the program of the tests and returns where it should be.
func fetch(t *testing.T, s Source) (string, error) {
	t.Helper()
	file, ok := s.File("1.37.1", "linux", "amd64", "kube-apiserver")
	if !ok {
		t.Fatal("the program has no checksum")
	}
	path := filepath.Join(t.TempDir(), "kube-apiserver")
	return path, s.Fetch(t.Context(), file, path)
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
	path, err := fetch(t, s)
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
}

func TestFetchDiscardsAProgramWithAnotherChecksum(t *testing.T) {
	const tampered = "#!/bin/sh\necho something else\n"
	s, requests := serve(t, answer(tampered))
	path, err := fetch(t, s)
	want := s.Base + program + " has SHA-256 " + sum(tampered) + ", expected " + sum(content) + "; the file was discarded"
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
	if errors.Is(err, ErrUnavailable) {
		t.Error("the file counts as unavailable, so that a build would replace it")
	}
	wantNothingAt(t, path)
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1: the next answer is no better", got)
	}
}

func TestFetchReportsThatAProgramIsUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		reason  string
	}{
		"the connection breaks":      {cut, "unexpected EOF"},
		"the server stalls":          {stall, "context deadline exceeded"},
		"the server never answers":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "context deadline exceeded"},
		"the program does not exist": {http.NotFound, "the server answers 404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serve(t, tt.handler)
			if strings.Contains(tt.reason, "deadline") {
				s.Timeout = 20 * time.Millisecond
			}
			path, err := fetch(t, s)
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("error is %v, want that the program is unavailable: %s", err, tt.reason)
			}
			wantNothingAt(t, path)
		})
	}
}

func TestFetchWithoutANetworkReportsThatAProgramIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	s, _ := serve(t, http.NotFound)
	s.Base = server.URL + "/"
	server.Close() // its port is closed now
	path, err := fetch(t, s)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error is %v, want that the program is unavailable: connection refused", err)
	}
	wantNothingAt(t, path)
}

func TestFetchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, requests := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	path := filepath.Join(t.TempDir(), "kube-apiserver")
	err := s.Fetch(ctx, File{Path: program, SHA256: sum(content)}, path)
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
	err := s.Fetch(t.Context(), File{Path: program, SHA256: sum(content)}, filepath.Join(t.TempDir(), "none", "file"))
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrUnavailable) {
		t.Errorf("error is %v, want that of the file system", err)
	}
	if got := requests.Load(); got != 0 {
		t.Errorf("%d requests, want none", got)
	}
}
