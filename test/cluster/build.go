package cluster

import (
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// KubectlPath returns the path of the kubectl of the control plane's own release.
func KubectlPath(t testing.TB) string {
	t.Helper()
	found, err := prebuilt.ControlPlane(sandbox.BuildSpec{Kubectl: true})
	if err != nil {
		t.Fatal(err)
	}
	return found.Path("kubectl")
}
