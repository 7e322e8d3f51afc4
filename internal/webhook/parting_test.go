package webhook

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/test/patience"
)

// An API server keeps its connections and neither asks again nor asks anybody else when
// one is closed while it writes on it.
func TestEndingServerAnswersItsLastCallers(t *testing.T) {
	t.Parallel()
	address, end, ended := newParting(t)
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}}
	patience.Eventually(t, "the server to listen", func(context.Context) (string, bool) { return "", answers(caller, address) })
	if kept := ask(t, caller, address); !kept {
		t.Error("a connection is not kept although the server goes on")
	}

	told := time.Now()
	end()
	// A server that kept its connections to the end would not answer the last call.
	for ask(t, caller, address) {
	}
	if response, err := caller.Post("https://"+address, "application/json", strings.NewReader("{}")); err == nil {
		if _ = response.Body.Close(); !response.Close {
			t.Error("who calls once more is answered as if the server went on")
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if left := time.Since(told); left < parting {
		t.Errorf("the server was gone %s after it was told to end, want it to answer for %s", left, parting)
	}
	if answers(caller, address) {
		t.Error("the server answers although it has ended")
	}
}

func TestTakenPortIsReported(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	address := taken.Addr().String()
	server, err := newServer(Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "serve the webhooks: listen tcp "+address) {
		t.Errorf("error %v, want it to name %s", err, address)
	}
}

// newParting serves under a free port until it is told to end, and says how it did.
func newParting(t *testing.T) (address string, end context.CancelFunc, ended chan error) {
	t.Helper()
	free := httptest.NewTLSServer(nil)
	address = free.Listener.Addr().String()
	shows := &Certificate{}
	shows.current.Store(&free.TLS.Certificates[0])
	free.Close()
	server, err := newServer(Options{Address: address, Certificate: shows})
	if err != nil {
		t.Fatal(err)
	}
	server.server.Register("/", server.answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("admitted")) })))
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	ended = make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	return address, end, ended
}

// ask wants an answer, and returns true if the connection of it is kept.
func ask(t *testing.T, caller *http.Client, address string) (kept bool) {
	t.Helper()
	response, err := caller.Post("https://"+address, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "admitted" {
		t.Errorf("the answer is %q, %v", body, err)
	}
	return !response.Close
}

func answers(caller *http.Client, address string) bool {
	response, err := caller.Post("https://"+address, "application/json", strings.NewReader("{}"))
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Body.Close() == nil
}
