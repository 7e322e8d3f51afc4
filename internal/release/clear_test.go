package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A release takes the place of an earlier one, and of nothing else.
func TestOnlyAnEarlierReleaseIsRemoved(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	fill := func(names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(out, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := newRelease(out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	fill(append(published010, ".build", "notes.txt")...)

	want := filepath.Join(out, "notes.txt") + " is of no release, and all in the folder would be removed: name one that is not there"
	if err := r.all(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != len(published010)+2 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}

	if err := os.Remove(filepath.Join(out, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	if err := r.clear(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("an earlier release is left: %v", err)
	}
	if err := r.clear(); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}
