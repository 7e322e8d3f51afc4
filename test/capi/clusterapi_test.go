package capi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// shipped is Cluster API's core manager on one control plane.
type shipped struct {
	process  *exec.Cmd
	log      string
	provider *provider
}

var running = struct {
	mu  sync.Mutex
	all map[string]*shipped
}{all: map[string]*shipped{}}

// startClusterAPI has Cluster API and a provider run on the control plane of a test, once
// for all tests that share it.
func startClusterAPI(t testing.TB, c *cluster.Cluster) *shipped {
	t.Helper()
	running.mu.Lock()
	defer running.mu.Unlock()
	if s := running.all[c.Kubeconfig]; s != nil {
		return s
	}
	source := moduleDir(t)
	binary := prebuilt.Path(t, "cluster-api")
	installKinds(t, c, source)
	certificates := filepath.Join(filepath.Dir(binary), "..", "capi", fmt.Sprintf("run-%d-%d", os.Getpid(), len(running.all)))
	if err := os.MkdirAll(certificates, 0o700); err != nil {
		t.Fatal(err)
	}
	ca := certify(t, certificates)
	port := cluster.FreePort(t)
	s := &shipped{log: filepath.Join(certificates, "capi.log")}
	s.start(t, binary, c.Kubeconfig, certificates, port)
	installWebhooks(t, c, source, port, ca)
	s.provider = startProvider(c)
	running.all[c.Kubeconfig] = s
	return s
}

// stopAll ends what the tests have started.
func stopAll() {
	running.mu.Lock()
	defer running.mu.Unlock()
	for _, s := range running.all {
		s.provider.stop()
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		_ = os.RemoveAll(filepath.Dir(s.log))
	}
}

// moduleDir is where the source of Cluster API is.
func moduleDir(t testing.TB) string {
	t.Helper()
	return downloaded(t, "clusterapi", "sigs.k8s.io/cluster-api")
}

// downloaded is where the source of a module is that the module in a folder requires. Go
// tells of it only what it has.
func downloaded(t testing.TB, folder, module string) string {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	download.Dir, download.Env = folder, append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	var stderr bytes.Buffer
	download.Stderr = &stderr
	out, err := download.Output()
	if err != nil {
		t.Fatalf("find the source of %s: %v\n%s", module, err, stderr.String())
	}
	var where struct{ Dir string }
	if err := json.Unmarshal(out, &where); err != nil || where.Dir == "" {
		t.Fatalf("no folder of module %s in %s: %v", module, out, err)
	}
	return where.Dir
}

// installKinds installs the kinds of Cluster API, from its module, and those of the provider.
func installKinds(t testing.TB, c *cluster.Cluster, source string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, "core/config/crd/bases/*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files with CRDs in %s, %v", len(files), source, err)
	}
	for _, file := range append(files, "testdata/provider.yaml") {
		for _, object := range documents(t, file) {
			if err := c.Client.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
		}
	}
	patience.Eventually(t, "the kinds of Cluster API to be served", func(ctx context.Context) (string, bool) {
		for _, kind := range []schema.GroupVersionKind{machineKind, hostKind, controlPlaneKind} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := c.Client.List(ctx, list); err != nil {
				return err.Error(), false
			}
		}
		return "", true
	})
}

func documents(t testing.TB, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split("\n"+string(data), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
	return all
}

// installWebhooks leads the API server to the webhooks of Cluster API, as its manifests
// have them but for the address.
func installWebhooks(t testing.TB, c *cluster.Cluster, source string, port int, ca []byte) {
	t.Helper()
	for _, object := range documents(t, filepath.Join(source, "core/config/webhook/manifests.yaml")) {
		webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range webhooks {
			webhook := one.(map[string]any)
			path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			webhook["clientConfig"] = map[string]any{
				"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "caBundle": base64.StdEncoding.EncodeToString(ca),
			}
		}
		object.SetName("capi-" + object.GetName())
		if err := unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"); err != nil {
			t.Fatal(err)
		}
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// certify makes the certificate of the webhooks, in a folder that outlives the test: others
// use the manager, too.
func certify(t testing.TB, dir string) (ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{
		"tls.crt": ca, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca
}

// start runs the manager until the test process ends, even when that is killed.
func (s *shipped) start(t testing.TB, binary, kubeconfig, certificates string, port int) {
	t.Helper()
	file, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.process = exec.Command(binary, "--kubeconfig="+kubeconfig, "--webhook-cert-dir="+certificates, fmt.Sprintf("--webhook-port=%d", port),
		"--diagnostics-address=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--insecure-diagnostics", "--v=2")
	s.process.Env = append(os.Environ(), "POD_NAMESPACE=default", "POD_NAME=capi", "POD_UID=00000000-0000-0000-0000-000000000000")
	s.process.Stdout, s.process.Stderr = file, file
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "Cluster API's webhooks to listen", func(context.Context) (string, bool) {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Sprint(err, s.tail()), false
		}
		return "", connection.Close() == nil
	})
}

// tail is the end of its log.
func (s *shipped) tail() string {
	data, _ := os.ReadFile(s.log)
	return string(data[max(0, len(data)-8000):])
}
