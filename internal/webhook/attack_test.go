package webhook

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// The authority may be one that signs for others, too.
func TestACertificateForAnotherNameIsRefused(t *testing.T) {
	t.Parallel()
	kubelet := sample.Certificate(t, "system:node:one")
	file := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: kubelet.Certificate[0]}), 0o600))
	for _, test := range []struct {
		names []string
		want  string
	}{
		{names: nil, want: ""},
		{names: []string{"other", "system:node:one"}, want: ""},
		{names: []string{"other", "another"}, want: `the caller's certificate is for "system:node:one", not for other, another`},
	} {
		server := &tls.Config{Certificates: []tls.Certificate{sample.Certificate(t, "server")}}
		ClientCertificate{CAFile: file, Names: test.names}.demand(server)
		got := handshake(t, server, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{kubelet}})
		if got != test.want {
			t.Errorf("names %v: the server says %q, want %q", test.names, got, test.want)
		}
	}
}

// handshake returns what the server says against it.
func handshake(t *testing.T, server, caller *tls.Config) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	var calls sync.WaitGroup
	defer calls.Wait()
	calls.Go(func() {
		if connection, err := tls.Dial("tcp", listener.Addr().String(), caller); err == nil {
			_ = connection.Close()
		}
	})
	accepted, err := listener.Accept()
	must(t, err)
	defer func() { _ = accepted.Close() }()
	err = accepted.(*tls.Conn).Handshake()
	return strings.Replace(errorText(err), "admitted", "", 1)
}

func TestAuthoritiesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.crt")
	must(t, os.WriteFile(empty, nil, 0o600))
	for want, certificate := range map[string]ClientCertificate{
		"read --webhook-client-ca: open /no/such/file: no such file or directory":  {CAFile: "/no/such/file"},
		"--webhook-client-ca " + empty + " has no certificate in PEM format":       {CAFile: empty},
		"names of the API server's certificate (a, b) require --webhook-client-ca": {Names: []string{"a", "b"}},
	} {
		if _, err := newServer(Options{Address: ":9443", Client: certificate}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestUserWithTooManyAttributesIsRefused(t *testing.T) {
	t.Parallel()
	answered := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
	many := make([]string, 3000)
	for i := range many {
		many[i] = strings.Repeat("g", 100)
	}
	for name, test := range map[string]struct {
		user authenticationv1.UserInfo
		want string
	}{
		"a usual one":     {user: authenticationv1.UserInfo{Username: "jane", Groups: many[:1000]}},
		"a long name":     {authenticationv1.UserInfo{Username: strings.Repeat("j", 1025)}, "the user name has 1025 bytes, more than the supported 1024"},
		"too many groups": {authenticationv1.UserInfo{Username: "jane", Groups: many}, `groups and extra fields of user "jane" have 300000 bytes, more than the supported 262144`},
		"too much extra": {
			authenticationv1.UserInfo{Username: "jane", UID: "u", Extra: map[string]authenticationv1.ExtraValue{"k": {strings.Repeat("e", 262143)}}},
			`groups and extra fields of user "jane" have 262145 bytes, more than the supported 262144`,
		},
	} {
		answer := bounded{answered}.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UserInfo: test.user}})
		if answer.Allowed != (test.want == "") || !answer.Allowed && answer.Result.Message != test.want {
			t.Errorf("%s: answer %+v, want %q", name, answer.Result, test.want)
		}
	}
}

// One who calls the eviction API for all pods of a cluster does not write without end.
func TestWritesForCallersAreBounded(t *testing.T) {
	t.Parallel()
	pod := sample.Pod("shop", "web")
	pod.Annotations = registered("mover.example.com", "20")
	api := fault.NewServer(t, pod)
	gate := newEvictionGate(registry{cached: api.Manager, live: api.Manager}, api.Manager, api.Manager, Options{Now: trusted})
	gate.writes = flowcontrol.NewFakeNeverRateLimiter()
	answer := gate.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte("{}")},
	}})
	const want = "cannot request the Evacuation of pod web, try again: more than 100 Evacuations a second are requested"
	if answer.Allowed || answer.Result.Code != http.StatusTooManyRequests || answer.Result.Message != want {
		t.Errorf("allowed %v, answer %+v, want %q", answer.Allowed, answer.Result, want)
	}
	if writes := api.Writes(); len(writes) > 0 {
		t.Errorf("writes %v, want none", writes)
	}
}
