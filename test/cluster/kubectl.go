package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Kubectl runs the kubectl of the control plane's own release as the
// administrator, to its end. It returns what kubectl printed, errors included,
// and an error if its exit code is not 0.
func (c *Cluster) Kubectl(t testing.TB, args ...string) (output string, err error) {
	t.Helper()
	return c.StartKubectl(t, args...).Wait()
}

// Kubectl is a kubectl that runs.
type Kubectl struct {
	output output
	ended  chan struct{}
	err    error // how it ended; valid after ended
}

// StartKubectl is Kubectl for a test that looks on. It ends with the test.
func (c *Cluster) StartKubectl(t testing.TB, args ...string) *Kubectl {
	t.Helper()
	k := &Kubectl{ended: make(chan struct{})}
	command := exec.CommandContext(t.Context(), KubectlPath(t), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+filepath.Join(c.plane.Dir, "kubectl-cache"))
	command.Stdout, command.Stderr = &k.output, &k.output
	go func() {
		defer close(k.ended)
		k.err = command.Run()
	}()
	t.Cleanup(func() { <-k.ended })
	return k
}

// Output is what it has printed so far.
func (k *Kubectl) Output() string { return k.output.String() }

// Wait returns when it has ended, with what Cluster.Kubectl returns.
func (k *Kubectl) Wait() (output string, err error) {
	<-k.ended
	return k.Output(), k.err
}

// output collects what a program prints while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
