// Package prebuilt builds the programs that tests run, before any test starts: a compiler beside
// running stories would occupy both cores. `make programs` builds what `make test` needs, and
// other targets build theirs. A test asks for a program by name, and fails with the target to
// run if it is missing or older than its source.
package prebuilt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Set is what a make target builds.
type Set string

const (
	// Basic are the programs of `make test`.
	Basic Set = "programs"
	// Long are the further ones of `make test-all`.
	Long Set = "programs-all"
	// Node are the further ones of `make test-node`.
	Node Set = "node-binaries"
	// Karpenter is the one of `make test-karpenter`.
	Karpenter Set = "karpenter"
)

// Earlier is the commit of a release that users upgrade from.
const Earlier = "d9efdcf"

// earlierDir is where its source is.
const earlierDir = ".bin/earlier"

// program is a main package.
type program struct {
	name string
	set  Set
	// dir is the folder of its module in the repository, "." for our own.
	dir string
	// pkg is the main package.
	pkg string
	// tags are build tags.
	tags string
}

// programs are all of them. Names are those of the files in .bin/programs.
var programs = []program{
	{"ebbtide", Basic, ".", "./cmd/ebbtide", ""},
	{"ebbtide-agent", Basic, ".", "./cmd/ebbtide-agent", ""},
	{"kubectl-ebbtide", Basic, ".", "./cmd/kubectl-ebbtide", ""},
	{"sandbox", Basic, ".", "./cmd/sandbox", ""},
	{"leader", Basic, ".", "./examples/leader", ""},
	{"responder", Basic, ".", "./examples/responder", ""},
	{"release", Long, ".", "./internal/release", ""},
	{"cluster-api", Long, "test/capi/clusterapi", "sigs.k8s.io/cluster-api/core", ""},
	// Without what finds targets, which is most of it.
	{"promtool", Long, "test/alert/promtool", "github.com/prometheus/prometheus/cmd/promtool", "remove_all_sd"},
	{"prometheus", Long, "test/alert/promtool", "github.com/prometheus/prometheus/cmd/prometheus", "remove_all_sd"},
	{"krew", Long, "internal/release/krew", "sigs.k8s.io/krew/cmd/krew", ""},
	{"validate-krew-manifest", Long, "internal/release/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest", ""},
	{"app", Node, "test/node", "./app", ""},
	{"helm", Node, "test/node", "./helm", ""},
	{"ebbtide-earlier", Node, earlierDir, "./cmd/ebbtide", ""},
	{"karpenter", Karpenter, "test/karpenter/module", "sigs.k8s.io/karpenter/kwok", ""},
}

// Path returns the path of a program.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := sandbox.ProgramDir()
	if err == nil {
		err = check(filepath.Dir(filepath.Dir(dir)), name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// ControlPlane returns the binaries of the control plane.
//
// Errors: one of them is not built. The error names the make target that builds it.
func ControlPlane(spec sandbox.BuildSpec) (sandbox.Binaries, error) {
	found, err := sandbox.Find(spec)
	if err == nil {
		return found, nil
	}
	target := Basic
	if spec.Nodes {
		target = Node
	}
	return found, fmt.Errorf("%w: run `make %s`", err, target)
}

// Check returns an error that names what to run if one of the basic programs is missing or older
// than its source.
func Check() error {
	dir, err := sandbox.ProgramDir()
	if err != nil {
		return err
	}
	for _, p := range programs {
		if p.set != Basic {
			continue
		}
		if err := check(filepath.Dir(filepath.Dir(dir)), p.name); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless a program is there and newer than its source. Times will do: a
// build in vain takes seconds.
func check(root, name string) error {
	n := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if n < 0 {
		return fmt.Errorf("there is no program %q of tests, see test/prebuilt", name)
	}
	p := programs[n]
	info, err := os.Stat(filepath.Join(root, ".bin", "programs", name))
	if err != nil {
		return fmt.Errorf("%s is not built: run `make %s`", name, p.set)
	}
	file, changed, err := newest(filepath.Join(root, p.dir))
	if err != nil {
		return err
	}
	if changed.After(info.ModTime()) {
		return fmt.Errorf("%s is older than %s: run `make %s`", name, file, p.set)
	}
	return nil
}

// sources are the folders of our module that programs are built from.
var sources = []string{"api", "charts", "cmd", "examples", "internal"}

// newest returns the file of a module that was changed last, of those that a program can be
// built from. It is read once.
func newest(module string) (file string, changed time.Time, err error) {
	found.mu.Lock()
	defer found.mu.Unlock()
	if one, ok := found.newest[module]; ok {
		return one.file, one.changed, nil
	}
	var last change
	see := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().After(last.changed) {
			last = change{path, info.ModTime()}
		}
		return err
	}
	folders := sources
	if _, err := os.Stat(filepath.Join(module, "cmd")); err != nil {
		folders = nil
	}
	for _, folder := range folders {
		if err := filepath.WalkDir(filepath.Join(module, folder), see); err != nil {
			return "", time.Time{}, err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		info, err := os.Stat(filepath.Join(module, name))
		if err == nil && info.ModTime().After(last.changed) {
			last = change{filepath.Join(module, name), info.ModTime()}
		}
	}
	found.newest[module] = last
	return last.file, last.changed, nil
}

// change is when a file was changed.
type change struct {
	file    string
	changed time.Time
}

// found is what newest has read in this process.
var found = struct {
	mu     sync.Mutex
	newest map[string]change
}{newest: map[string]change{}}
