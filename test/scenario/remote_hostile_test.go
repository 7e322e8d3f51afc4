package scenario

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// bomb is the way to a cluster that answers like any other until it is armed. Then it
// sends pods without end.
type bomb struct {
	*httptest.Server
	armed atomic.Bool
	sent  atomic.Int32
}

func (r *remote) bomb() *bomb {
	r.t.Helper()
	behind, err := url.Parse(r.cluster.Config.Host)
	r.must("read the address", err)
	transport, err := rest.TransportFor(r.cluster.Config)
	r.must("reach the cluster", err)
	honest := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(behind); p.Out.Header.Del("Authorization") },
	}
	b := &bomb{}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if !b.armed.Load() || !strings.HasSuffix(request.URL.Path, "/pods") || request.URL.Query().Get("limit") == "1" {
			honest.ServeHTTP(answer, request)
			return
		}
		b.sent.Add(1)
		answer.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		for {
			if _, err := io.WriteString(answer, strings.Repeat("\xff", 1<<20)); err != nil {
				return
			}
		}
	}))
	r.t.Cleanup(func() { _ = b.Config.Close() })
	return b
}

// A cluster attacks those who read it. Its Machine stands still and says why; that of
// another cluster goes. After a restart of the manager it is still left alone, and when
// it is repaired, under another Secret, the deletion goes on.
func TestLongAHostileClusterHoldsUpOnlyItsMachine(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	bad, good := w.elsewhere("bad"), w.remote("good")
	bomb := bad.bomb()
	bomb.armed.Store(true)
	bad.store(bad.leadingTo(bomb.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: bomb.Certificate().Raw})))
	stuck, free := bad.found("m"), good.found("m")
	bad.pods(stuck, pod{name: "web"})
	good.pods(free, pod{name: "web"})

	w.deleteMachines(stuck, free)

	good.awaitNothingOf(free)
	says := []string{"connect to " + bomb.URL + ": the cluster sends ", " larger than ", "Will connect again at "}
	bad.awaitReachable("False", v1alpha1.ReasonLimitExceeded, says...)
	bad.awaitStuck(stuck, "Will connect again at ")
	bad.awaitPod("web", "still running", running)
	await(w, "a hold-off in its status that has just begun", &v1alpha1.Cluster{}, bad.name, func(c *v1alpha1.Cluster) bool {
		return c.Status.HoldOff != nil && time.Until(c.Status.HoldOff.EndTime.Time) > 40*time.Second
	})

	sent := bomb.sent.Load()
	w.manager.Kill(t)
	w.manager.Start(t)

	bad.awaitReachable("False", v1alpha1.ReasonLimitExceeded, "The cluster has exceeded a bound. Will connect again at ")
	if got := bomb.sent.Load(); got != sent {
		t.Errorf("the manager has read %d more answers after its restart, want none", got-sent)
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "repaired"}, Data: map[string][]byte{"value": bad.proxy.Kubeconfig(t)}})
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(c, bad.name, func() { c.Spec.KubeconfigSecretRef.Name = "repaired" })
	bad.awaitBack()
	bad.awaitGone("web")
	bad.awaitNothingOf(stuck)
}
