package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// A program is linked once, however many sandboxes run it: the second does without a go
// command. It takes the place of one that is there, which may run.
func TestAProgramIsLinkedOnce(t *testing.T) {
	const folder = "internal/sandbox/pause"
	dir := t.TempDir()
	if err := BuildPrograms(t.Context(), dir, folder); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	const old = "what was there before"
	other := t.TempDir()
	writeTestFile(t, filepath.Join(other, "pause"), old, 0o600)
	if err := BuildPrograms(t.Context(), other, folder); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{dir, other} {
		info, err := os.Stat(filepath.Join(where, "pause"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() <= int64(len(old)) || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("there is a program of %d bytes with the mode %s", info.Size(), info.Mode())
		}
	}
	if err := BuildPrograms(t.Context(), dir, "internal/sandbox/none"); err == nil {
		t.Error("a program is built that there is not")
	}
}
