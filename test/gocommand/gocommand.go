// Package gocommand simulates the go command for tests of code that calls it. It builds
// executables that do not run, without compiling and without a network. An executable holds a
// valid header, build information, and everything that a real one depends on, so two builds are
// equal exactly if two real builds would be.
package gocommand

import (
	_ "embed"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

//go:embed go.sh
var script []byte

// Sum is the checksum of the dependency.
const Sum = "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// Play puts the command into PATH before everything else until the test ends.
func Play(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	dependency := debug.Module{Path: "github.com/go-logr/logr", Version: "v1.2.3", Sum: Sum}
	info := &debug.BuildInfo{
		Path: "ebbtide.dev/ebbtide/cmd/ebbtide", Main: debug.Module{Path: "ebbtide.dev/ebbtide", Version: "(devel)"}, Deps: []*debug.Module{&dependency},
	}
	for name, data := range map[string][]byte{
		"go":             script,
		"amd64":          Executable("amd64", info),
		"arm64":          Executable("arm64", info),
		"modules":        []byte(dependency.Path + "\t" + filepath.Join(dir, "logr") + "\n"),
		"logr/LICENSE":   []byte("Apache License\nVersion 2.0, January 2004\n"),
		"goroot/LICENSE": []byte("Redistribution and use in source and binary forms is permitted. Names may not be used to endorse or promote products.\n"),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
