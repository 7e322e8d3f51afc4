package cluster

import (
	"fmt"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// binaries returns the binaries of the control plane, or an error that names the make target
// that builds them.
func binaries(spec sandbox.BuildSpec) (sandbox.Binaries, error) {
	found, err := sandbox.Find(spec)
	target := "programs"
	if spec.Nodes {
		target = "node-binaries"
	}
	if err != nil {
		return found, fmt.Errorf("%w: run `make %s`", err, target)
	}
	return found, nil
}

// KubectlPath returns the path of the kubectl of the control plane's own release.
func KubectlPath(t testing.TB) string {
	t.Helper()
	found, err := binaries(sandbox.BuildSpec{Kubectl: true})
	if err != nil {
		t.Fatal(err)
	}
	return found.Path("kubectl")
}
