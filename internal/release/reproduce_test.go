package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/test/gocommand"
)

func TestReproduceBuildsTheSameManagerTwice(t *testing.T) {
	gocommand.Play(t)
	t.Setenv("TMPDIR", t.TempDir())
	var said bytes.Buffer
	r, err := newRelease("", &said)
	if err != nil {
		t.Fatal(err)
	}
	r.root = tiny
	if err := r.reproduce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`ebbtide for linux/amd64 has SHA-256 [0-9a-f]{64} both times\n$`).MatchString(said.String()) {
		t.Errorf("it says\n%s", &said)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A manager that needs a file which belongs to no folder of its source is not reproducible.
func TestReproduceReportsTwoManagersThatDiffer(t *testing.T) {
	gocommand.Play(t)
	r, err := newRelease("", &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	r.root = t.TempDir()
	if err := os.CopyFS(r.root, os.DirFS(tiny)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.root, "stray.go"), []byte("package ebbtide\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = r.reproduce(t.Context())
	if err == nil || !regexp.MustCompile(`^ebbtide for linux/amd64 has SHA-256 [0-9a-f]{64}, and [0-9a-f]{64} if it is built from a copy of its source$`).MatchString(err.Error()) {
		t.Errorf("error is %v, want that they differ", err)
	}
}

func TestAReleaseIsLimitedToPlatforms(t *testing.T) {
	t.Parallel()
	r, err := newRelease("", &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.programs[manager]) != 2 || len(r.programs[plugin]) != 6 {
		t.Errorf("without a limit programs are %v", r.programs)
	}
	if err := r.limit([]string{"linux/arm64", "darwin/arm64"}); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, program := range slices.Sorted(maps.Keys(r.programs)) {
		for _, p := range r.programs[program] {
			got[program] = append(got[program], p.String())
		}
	}
	if diff := cmp.Diff(map[string][]string{manager: {"linux/arm64"}, plugin: {"linux/arm64", "darwin/arm64"}}, got); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	want := `there is no release for "plan9/mips", only for `
	if err := r.limit([]string{"plan9/mips"}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error is %v, want %s", err, want)
	}
	for _, args := range [][]string{nil, {"all"}, {"reproduce", "out"}, {"publish", "out"}} {
		if err := run(t.Context(), args); err == nil || !strings.HasPrefix(err.Error(), "usage: release ") {
			t.Errorf("release %v: error is %v, want how it is used", args, err)
		}
	}
}
