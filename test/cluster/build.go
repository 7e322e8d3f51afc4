package cluster

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Build builds main packages of this module, such as ./cmd/kubectl-ebbtide, and returns
// the folder in which they are until the test ends.
func Build(t testing.TB, packages ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..")
	build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-C", root, "-buildvcs=false", "-o", dir + string(filepath.Separator)}, packages...)...)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %v: %v\n%s", packages, err, text)
	}
	return dir
}
