package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/certificate"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/patience"
)

// Replica is one of several managers of which one leads.
type Replica struct {
	*sandbox.Manager
	metrics string // where they are served
	webhook string // where it answers the API server
	client  client.Client
}

// StartReplica starts another manager, which leads if no other one does. The API
// server calls the webhooks of any that is there. It ends with the test.
func (c *Cluster) StartReplica(t testing.TB) Replica {
	t.Helper()
	replica, err := c.AddReplica(t)
	if err != nil {
		t.Fatal(err)
	}
	return replica
}

// AddReplica is StartReplica for another goroutine than the test's.
//
// Errors: it cannot be started.
func (c *Cluster) AddReplica(t testing.TB) (Replica, error) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	r := Replica{client: c.Client, metrics: fmt.Sprintf("127.0.0.1:%d", FreePort(t)), webhook: fmt.Sprintf("127.0.0.1:%d", FreePort(t))}
	c.plane.service.add(r.webhook)
	err := c.plane.InstallChart(ctx, c.plane.service.port())
	if err != nil {
		return r, err
	}
	args := append(slices.Clone(c.plane.manager.args), "--leader-elect=true", "--metrics-bind-address="+r.metrics, "--webhook-bind-address="+r.webhook)
	if c.plane.tap != nil {
		args = append(args, "--kubeconfig="+c.plane.tap.kubeconfig)
	}
	r.Manager, err = c.plane.StartManager(ctx, args...)
	if err != nil {
		return r, err
	}
	t.Cleanup(func() {
		_ = r.Resume() // It may be paused.
		r.Stop()
	})
	c.explain(t, "a manager", func() logged { return r.Manager })
	return r, nil
}

// Metrics are what it answers to who shows a token, and the status of the answer; 0 and why
// if there is none, as when it has just begun. The manager is verified as by the chart's
// ServiceMonitor.
func (r Replica) Metrics(t testing.TB, token string) (status int, text string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.authority(t), ServerName: certificate.DNSName(Account.Namespace)}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.metrics+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err.Error()
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// authority is what Prometheus trusts.
func (r Replica) authority(t testing.TB) *x509.CertPool {
	t.Helper()
	secret := &corev1.Secret{}
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: Account.Namespace, Name: certificate.SecretName}, secret); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("the Secret has no authority")
	}
	return pool
}

// Acted are the lines of its log after this many bytes that tell of something that it
// did in the cluster.
func (r Replica) Acted(t testing.TB, after int) []string {
	t.Helper()
	log := r.log(t)
	var acted []string
	for line := range strings.Lines(string(log[min(after, len(log)):])) {
		for _, act := range []string{"Asked for", "Changed the cordon", "Pod eviction successfully", "Let go of", "Deleted evacuations", "Withdrew"} {
			if strings.Contains(line, `msg="`+act) {
				acted = append(acted, line)
			}
		}
	}
	return acted
}

// LogSize is how many bytes its log has.
func (r Replica) LogSize(t testing.TB) int {
	t.Helper()
	return len(r.log(t))
}

// Leads returns true once it has become the leader.
func (r Replica) Leads(t testing.TB) bool {
	t.Helper()
	return bytes.Contains(r.log(t), []byte("Successfully acquired lease"))
}

func (r Replica) log(t testing.TB) []byte {
	t.Helper()
	log, err := os.ReadFile(r.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	return log
}
