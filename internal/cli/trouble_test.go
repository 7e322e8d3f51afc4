package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// kubeconfig names a cluster by its address.
func kubeconfig(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		CurrentContext: "here",
		Clusters:       map[string]*clientcmdapi.Cluster{"here": {Server: address}},
		Contexts:       map[string]*clientcmdapi.Context{"here": {Cluster: "here"}},
	}
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Every verb that asks a cluster says which one does not answer, in one line and in time.
func TestLongAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "https://" + closed.Addr().String()
	closed.Close()
	hung := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	t.Cleanup(silent.Close)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-hung
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(hung) })
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	const look = ". Check that it is running and the right one with\n  kubectl config view --minify --kubeconfig CONFIG\n"
	for name, tt := range map[string]struct {
		address, why string
		args         []string
	}{
		"nobody listens":               {address: nobody, why: "connection refused"},
		"nobody answers":               {address: silent.URL, why: "no answer within 200ms", args: []string{"--request-timeout=200ms"}},
		"half an answer":               {address: slow.URL, why: "no answer within 200ms", args: []string{"--request-timeout=200ms"}},
		"somebody with another's name": {address: secure.URL, why: "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
	} {
		for _, verb := range [][]string{{"why", "pod/db-0"}, {"agents"}, {"lock", "pdb/web"}} {
			t.Run(name+" to "+verb[0], func(t *testing.T) {
				t.Parallel()
				config := kubeconfig(t, tt.address)
				got := run(t.Context(), append(append(verb, "--kubeconfig", config), tt.args...)...)
				got.ErrOut = strings.ReplaceAll(got.ErrOut, config, "CONFIG")
				want := result{Code: 1, ErrOut: "error: the cluster at " + tt.address + " does not answer: " + tt.why + look}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Who completes a line in a shell waits for a moment at most, and is told nothing.
func TestACompletionIsSilent(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(hung) })
	for name, address := range map[string]string{"nobody listens": "http://127.0.0.1:1", "nobody answers": silent.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t.Context(), "__complete", "agents", "--kubeconfig", kubeconfig(t, address), "")
			want := result{Out: ":4\n", ErrOut: "Completion ended with directive: ShellCompDirectiveNoFileComp\n"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTroubleInWords(t *testing.T) {
	t.Parallel()
	nodes := schema.GroupResource{Resource: "nodes"}
	c := &connection{}
	cmd := newAgents(genericiooptions.IOStreams{})
	c.flags = cmd.Flags()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a right in the cluster": {
			fmt.Errorf("list nodes: %w", apierrors.NewForbidden(nodes, "", errors.New(`User "system:serviceaccount:ops:bot" cannot list resource "nodes" in API group "" at the cluster scope`))),
			`you may not list nodes in the whole cluster (user "system:serviceaccount:ops:bot"). ` +
				"Ask an administrator for this verb, and check it with\n  kubectl auth can-i list nodes",
		},
		"a right in a namespace": {
			apierrors.NewForbidden(nodes, "", errors.New(`User "anna" cannot create resource "pods/eviction" in API group "policy" in the namespace "shop"`)),
			`you may not create pods.policy/eviction in namespace shop (user "anna"). ` +
				"Ask an administrator for this verb, and check it with\n  kubectl auth can-i create pods.policy --subresource=eviction -n shop",
		},
		"a refusal for other reasons": {
			apierrors.NewForbidden(nodes, "a", errors.New("no changes on Fridays")), `nodes "a" is forbidden: no changes on Fridays`,
		},
		"Ebbtide is missing": {
			fmt.Errorf("list nodeagents: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "ebbtide.dev", Kind: "NodeAgent"}, SearchedVersions: []string{"v1alpha1"}}),
			"Ebbtide is not installed in this cluster, or is too old (ebbtide.dev is not served). Install it with\n" +
				"  helm upgrade --install ebbtide charts/ebbtide --namespace ebbtide-system --create-namespace --set image.repository=REGISTRY/ebbtide --wait\n" +
				"or choose another cluster with --context",
		},
		"another kind is missing": {
			&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, SearchedVersions: []string{"v1"}},
			`no matches for kind "DaemonSet" in version "apps/v1"`,
		},
		"no manager": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "validate.nodemaintenance.` + v1alpha1.SchemeGroupVersion.Group + `": connection refused`)),
			"no manager of Ebbtide is running to check the request: Internal error occurred: failed calling webhook \"validate.nodemaintenance.ebbtide.dev\": " +
				"connection refused. Check it with\n  kubectl get pods -n ebbtide-system",
		},
		"another webhook": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example.com": connection refused`)),
			`Internal error occurred: failed calling webhook "policy.example.com": connection refused`,
		},
		"what a server says to terminals": {
			apierrors.NewUnauthorized("\x1b[2Jgo away" + strings.Repeat("!", 5000)),
			"the cluster rejects your credentials: [2Jgo away" + strings.Repeat("!", 1011) + "…. Log in again, or check the user with\n  kubectl config view --minify",
		},
		"words of its own": {final(errors.New("a lock is an annotation")), "a lock is an annotation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, c.inWords(tt.err).Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	c := &connection{}
	c.flags = newAgents(genericiooptions.IOStreams{}).Flags()
	for name, tt := range map[string]struct {
		err  error
		code int
		want string
	}{
		"done":                         {nil, 0, ""},
		"wrong":                        {errors.New("there is no node x"), 1, "error: there is no node x\n"},
		"not done":                     {notDone("2 pods are blocked"), 2, "2 pods are blocked\n"},
		"not done, and said before":    {fmt.Errorf("drain: %w", ended{code: codeNotDone}), 2, ""},
		"no manager":                   {ended{codeNoManager, "Timed out after 1m."}, 3, "Timed out after 1m.\n"},
		"nobody checks what is asked":  {c.inWords(errors.New(`failed calling webhook "nodemaintenances.ebbtide.dev": refused`)), 3, "error: no manager of Ebbtide is running to check the request: failed calling webhook \"nodemaintenances.ebbtide.dev\": refused. Check it with\n  kubectl get pods -n ebbtide-system\n"},
		"no right":                     {c.inWords(apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "a", errors.New("no"))), 4, "error: nodes \"a\" is forbidden: no\n"},
		"interrupted":                  {fmt.Errorf("list nodes: %w", context.Canceled), 130, "interrupted\n"},
		"nobody reads what is printed": {fmt.Errorf("print: %w", syscall.EPIPE), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := &bytes.Buffer{}
			if code := report(told, tt.err); code != tt.code || told.String() != tt.want {
				t.Errorf("exit code %d and %q, want %d and %q", code, told, tt.code, tt.want)
			}
		})
	}
}
