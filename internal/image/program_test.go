package image_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/image"
	"ebbtide.dev/ebbtide/test/gocommand"
)

// source writes the source of a program into a folder of its own.
func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/hello\n\ngo 1.26.0\n",
		"main.go": "package main\n\nvar version = \"none\"\n\nfunc main() { print(version) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A program does not depend on its folder, the commit, or what a developer has set.
func TestBuiltProgramDependsOnSourceAndPlatformOnly(t *testing.T) {
	gocommand.Play(t)
	build := func(p image.Platform, value string) []byte {
		t.Helper()
		file := filepath.Join(t.TempDir(), "hello")
		program := image.Program{Dir: source(t), Package: ".", Set: map[string]string{"main.version": value, "main.day": "today"}}
		if err := program.Build(t.Context(), p, file); err != nil {
			t.Fatal(err)
		}
		return read(t, file)
	}
	first := build(image.AMD64, "1.2.3 of today")
	for name, value := range map[string]string{
		"CGO_ENABLED": "1", "GOFLAGS": "-tags=mine", "GOWORK": "/go.work", "GOEXPERIMENT": "arenas", "GOAMD64": "v3", "GOARM64": "v9.0",
		"GOOS": "plan9", "GOARCH": "mips",
	} {
		t.Setenv(name, value)
	}
	if second := build(image.AMD64, "1.2.3 of today"); !bytes.Equal(first, second) {
		t.Errorf("another folder and environment (-first +second build):\n%s", cmp.Diff(string(first), string(second)))
	}
	for name, other := range map[string][]byte{"value": build(image.AMD64, "1.2.4"), "platform": build(image.ARM64, "1.2.3 of today")} {
		if bytes.Equal(first, other) {
			t.Errorf("another %s becomes the same program", name)
		}
	}
	if !bytes.Contains(first, []byte("\nmain.day=today\n-X\nmain.version=1.2.3 of today\n")) {
		t.Errorf("the program does not have its values: %q", first)
	}
}

func TestBuildReportsCompilerErrors(t *testing.T) {
	gocommand.Play(t)
	program := image.Program{Dir: source(t), Package: "./cmd/none"}
	err := program.Build(t.Context(), image.ARM64, filepath.Join(t.TempDir(), "none"))
	if want := "build ./cmd/none for linux/arm64: exit status 1\npackage ./cmd/none is not there\n"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}
