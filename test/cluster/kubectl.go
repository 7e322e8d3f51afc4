package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Kubectl runs the kubectl of the control plane's own release as the
// administrator, to its end. It returns what kubectl printed, errors included,
// and an error if its exit code is not 0.
func (c *Cluster) Kubectl(t testing.TB, args ...string) (output string, err error) {
	t.Helper()
	// Built from the same module as the control plane, unless it is there.
	binaries, err := sandbox.Build(t.Context(), sandbox.BuildSpec{Kubectl: true}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binaries.Path("kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+filepath.Join(c.plane.Dir, "kubectl-cache"))
	text, err := command.CombinedOutput()
	return string(text), err
}
