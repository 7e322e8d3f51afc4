package karpenter

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// startKarpenter has Karpenter run on the control plane of a test, until that ends.
func startKarpenter(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	binary := prebuilt.Path(t, "karpenter")
	// Go tells of it only what it has, which it has now.
	source := moduleDir(t)
	for _, pattern := range []string{"pkg/apis/crds/karpenter.sh_node[cp]*.yaml", "kwok/apis/crds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(source, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no CRDs: %v", err)
		}
		for _, file := range files {
			create(t, c, read(t, file))
		}
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "karpenter.log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), binary)
	process.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "DISABLE_LEADER_ELECTION=true", "SYSTEM_NAMESPACE=default",
		"METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "BATCH_IDLE_DURATION=200ms", "BATCH_MAX_DURATION=1s")
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the end of Karpenter's log:\n%s", text[max(0, len(text)-8000):])
		}
	})
}

// moduleDir is where the source of Karpenter is.
func moduleDir(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter")
	list.Dir, list.Env = "module", append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("find the source of Karpenter: %v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// create makes an object of what YAML says.
func create(t *testing.T, c *cluster.Cluster, text string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(text, "---\n")), &object.Object); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "the kind of "+object.GetName()+" to be served", func(ctx context.Context) (string, bool) {
		err := client.IgnoreAlreadyExists(c.Client.Create(ctx, object.DeepCopy()))
		if err != nil {
			return err.Error(), false
		}
		return "", true
	})
}
