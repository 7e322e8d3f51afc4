package cluster

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"ebbtide.dev/ebbtide/test/patience"
)

// Write is one that the manager made and the API server accepted.
type Write struct {
	// Method and Path are those of the request.
	Method, Path string
	// Body is what was sent, as the client encodes it: names are readable in it.
	Body string
}

// String tells the write from others, without the group and version.
func (w Write) String() string {
	_, what, _ := strings.Cut(strings.TrimPrefix(w.Path, "/"), "/v1")
	_, what, _ = strings.Cut(what, "/")
	return w.Method + " " + what
}

// Witness is shown a write before the manager hears that it was accepted, one at a
// time. If it returns true, the manager is killed and never hears of it. Another
// one is started.
type Witness func(Write) (kill bool)

// tap stands between a manager and the API server. It sees what the manager
// writes, and can end it behind any of its writes.
type tap struct {
	plane      *plane
	server     *httptest.Server
	kubeconfig string
	restarts   sync.WaitGroup
	// ahead is how far the API server's clock is ahead, as its answers have it.
	ahead atomic.Int64

	mu        sync.Mutex
	next      int
	witnesses map[int]Witness
	kills     int
	err       error // why the manager could not be started again
}

// Witness shows every write of the manager to the witness until the test ends. It
// is for clusters that are Tapped.
func (c *Cluster) Witness(t testing.TB, witness Witness) {
	t.Helper()
	p := c.plane.tap
	if p == nil {
		t.Fatal("the cluster is not Tapped")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	number := p.next
	p.next++
	p.witnesses[number] = witness
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.witnesses, number)
		if p.err != nil {
			t.Errorf("start the manager again: %v", p.err)
		}
	})
}

// Kills is how often witnesses have had a manager killed that ran; one that another
// witness has just killed does not.
func (c *Cluster) Kills() int {
	p := c.plane.tap
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kills
}

// SetServerClock has the answers of the API server say that its clock is so far ahead of
// what it is, until the test ends. It is for clusters that are Tapped.
func (c *Cluster) SetServerClock(t testing.TB, ahead time.Duration) {
	t.Helper()
	p := c.plane.tap
	if p == nil {
		t.Fatal("the cluster is not Tapped")
	}
	p.ahead.Store(int64(ahead))
	t.Cleanup(func() { p.ahead.Store(0) })
}

// date dates an answer by the clock that the API server is to have.
func (t *tap) date(response *http.Response) {
	date, err := http.ParseTime(response.Header.Get("Date"))
	if ahead := time.Duration(t.ahead.Load()); ahead != 0 && err == nil {
		response.Header.Set("Date", date.Add(ahead).UTC().Format(http.TimeFormat))
	}
}

// newTap returns a way for the manager to the API server.
func newTap(p *plane) (*tap, error) {
	target, err := url.Parse(p.Config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(p.Config))
	if err != nil {
		return nil, err
	}
	t := &tap{plane: p, witnesses: map[int]Witness{}, kubeconfig: filepath.Join(p.Dir, "tapped.kubeconfig")}
	t.server = httptest.NewUnstartedServer(keepBody(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		ModifyResponse: t.answered,
		// Whoever asked has been killed, or the API server ends.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}))
	// A manager that is killed ends its connections anyhow.
	t.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.server.EnableHTTP2 = true
	t.server.StartTLS()
	return t, t.writeKubeconfig()
}

// writeKubeconfig writes the manager's kubeconfig, through the tap.
func (t *tap) writeKubeconfig() error {
	config, err := clientcmd.LoadFromFile(t.plane.ManagerKubeconfig)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = t.server.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: t.server.Certificate().Raw})
	}
	return clientcmd.WriteToFile(*config, t.kubeconfig)
}

// bodyKey is the key of the body of a write in the context of its request.
type bodyKey struct{}

// keepBody keeps what a write says until it is answered.
func keepBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // whoever asked is gone
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, string(body)))
		}
		next.ServeHTTP(w, r)
	})
}

// answered sees the answer of the API server.
func (t *tap) answered(response *http.Response) error {
	t.date(response)
	request := response.Request
	body, write := request.Context().Value(bodyKey{}).(string)
	if !write || response.StatusCode >= http.StatusMultipleChoices {
		return nil
	}
	if !t.show(Write{Method: request.Method, Path: request.URL.Path, Body: body}) {
		return nil
	}
	if t.plane.manager.crash() {
		t.mu.Lock()
		t.kills++
		t.mu.Unlock()
		t.restarts.Go(t.restart)
	}
	return fmt.Errorf("%s %s: the manager is dead", request.Method, request.URL.Path)
}

func (t *tap) show(write Write) (kill bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, witness := range t.witnesses {
		if witness(write) {
			kill = true
		}
	}
	return kill
}

func (t *tap) restart() {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Bound)
	defer cancel()
	err := t.plane.manager.start(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
	}
}

// stop ends the tap when nobody is started again. A manager that still runs may connect at any
// moment, so it does not wait for connections to be idle.
func (t *tap) stop() {
	t.restarts.Wait()
	_ = t.server.Config.Close()
}
