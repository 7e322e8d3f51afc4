package cluster

import (
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Build builds main packages of this module, such as cmd/kubectl-ebbtide, and returns
// the folder in which they are until the test ends.
func Build(t testing.TB, packages ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := sandbox.BuildPrograms(t.Context(), dir, packages...); err != nil {
		t.Fatal(err)
	}
	return dir
}
