package api

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// gate is a proxy of the API server that holds requests up, or their answers.
type gate struct {
	*httptest.Server
	// reached gets a value when a request is held up, and open lets it and its answer go.
	reached, open chan struct{}
}

// newGate holds up requests that begin with these words. The answer is what is late if
// done is true, so that the request has been carried out.
func newGate(t *testing.T, config *rest.Config, words string, done bool) *gate {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{reached: make(chan struct{}, 10), open: make(chan struct{})}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		held := strings.HasPrefix(request.Method+" "+request.URL.Path, words)
		wait := func() { g.reached <- struct{}{}; <-g.open }
		if held && !done {
			wait()
		}
		if held && done {
			recorder := httptest.NewRecorder()
			proxy.ServeHTTP(recorder, request)
			wait()
			for key, values := range recorder.Header() {
				w.Header()[key] = values
			}
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
			return
		}
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(g.CloseClientConnections)
	return g
}

// binary is the plugin as it is installed.
func binary(t *testing.T) string {
	t.Helper()
	return prebuilt.Path(t, "kubectl-ebbtide")
}

// running is the plugin at work.
type running struct {
	*exec.Cmd
	mu          sync.Mutex
	out, errOut bytes.Buffer
}

// Write implements io.Writer for standard error.
func (r *running) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errOut.Write(text)
}

// begin starts the plugin. It is killed when it has not ended after a while.
func (d *desk) begin(program string, stdout io.Writer, args ...string) *running {
	d.t.Helper()
	r := &running{Cmd: exec.CommandContext(d.t.Context(), program, args...)}
	r.Stdout, r.Stderr = &r.out, r
	if stdout != nil {
		r.Stdout = stdout
	}
	r.Env = append(os.Environ(), "PATH="+filepath.Dir(program))
	if err := r.Start(); err != nil {
		d.t.Fatal(err)
	}
	kill := time.AfterFunc(patience.Bound, func() { _ = r.Process.Kill() })
	d.t.Cleanup(func() { kill.Stop(); _ = r.Process.Kill() })
	return r
}

// ended is what a person has seen when it has ended.
func (r *running) ended(d *desk, address string) printed {
	d.t.Helper()
	_ = r.Wait()
	shown := strings.NewReplacer(d.Kubeconfig, "CONFIG", d.Pool(), "POOL", address, "SERVER")
	return printed{r.ProcessState.ExitCode(), shown.Replace(r.out.String()), shown.Replace(r.errOut.String())}
}

// Ctrl-C leaves nothing half done, and nobody in doubt, whenever it comes.
func TestCtrlC(t *testing.T) {
	d := newDesk(t)
	program := binary(t)
	const (
		post    = "POST /apis/ebbtide.dev/v1alpha1/nodemaintenances"
		created = "NodeMaintenance POOL-NAME drains POOL-a\n"
		goesOn  = "The drain continues in the background. Watch it with\n  kubectl ebbtide watch POOL-NAME --kubeconfig CONFIG --server SERVER\n"
	)
	for name, tt := range map[string]interrupted{
		"before": {held: "GET /api/v1/nodes", want: printed{Code: 130, ErrOut: "interrupted\n"}},
		"while, and it is taken": {
			held: post, answered: true, exists: true, want: printed{Code: 130, Out: created, ErrOut: goesOn},
		},
		"while, and it is done": {
			held: post, done: true, answered: true, exists: true, want: printed{Code: 130, Out: created, ErrOut: goesOn},
		},
		"while, and nobody says what became of it": {
			held: post, done: true, exists: true, want: printed{Code: 1, ErrOut: "error: unknown whether NodeMaintenance POOL-NAME was created: no answer within 3s. Check with\n" +
				"  kubectl get nodemaintenance POOL-NAME --kubeconfig CONFIG --server SERVER\nand complete it with\n  kubectl ebbtide complete POOL-NAME --kubeconfig CONFIG --server SERVER\n"},
		},
		"after": {held: "GET /apis/ebbtide.dev/v1alpha1/nodemaintenances", exists: true, want: printed{Code: 130, Out: created, ErrOut: goesOn}},
	} {
		t.Run(name, func(t *testing.T) { tt.run(&desk{Cluster: d.Cluster, t: t}, program) })
	}
}

// interrupted is a run of drain that Ctrl-C ends while a request is held up.
type interrupted struct {
	// held is the request; done holds up its answer instead, which comes if answered is true.
	held           string
	done, answered bool
	want           printed
	// exists is true if the NodeMaintenance is there afterwards.
	exists bool
}

func (tt interrupted) run(d *desk, program string) {
	_, word, _ := strings.Cut(d.t.Name(), "/")
	word = strings.ToLower(strings.NewReplacer("_", "-", ",", "").Replace(word))
	name := d.Pool() + "-" + word
	g := newGate(d.t, d.Config, tt.held, tt.done)
	defer g.Close()
	r := d.begin(program, nil, "drain", d.Pool()+"-a", "--name", name, "--kubeconfig", d.Kubeconfig, "--server", g.URL)
	<-g.reached
	if err := r.Process.Signal(os.Interrupt); err != nil {
		d.t.Fatal(err)
	}
	if tt.answered {
		// The signal has to be there first, and nothing shows that it is.
		time.AfterFunc(300*time.Millisecond, func() { close(g.open) })
	} else {
		defer close(g.open)
	}
	got := r.ended(d, g.URL)
	got.Out, got.ErrOut = strings.ReplaceAll(got.Out, word, "NAME"), strings.ReplaceAll(got.ErrOut, word, "NAME")
	if diff := cmp.Diff(tt.want, got); diff != "" {
		d.t.Errorf("(-want +got):\n%s", diff)
	}
	exists := slices.ContainsFunc(d.maintenances(), func(m v1alpha1.NodeMaintenance) bool { return m.Name == name })
	if exists != tt.exists {
		d.t.Errorf("the NodeMaintenance exists: %t, want %t", exists, tt.exists)
	}
}
