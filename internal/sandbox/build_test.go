package sandbox

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeGo stands for the go command: it notes what it is asked to build and
// "builds" a text. It fails for the package in FAIL. In its build cache everything is
// missing that is in MISSING.
const fakeGo = `#!/bin/sh
case "$1 $*" in
  *" -m -f "*) echo "$FAKE_GO/kwok" ;;
  list*) for pkg in $MISSING; do echo "$pkg"; done ;;
  build*)
    for pkg in $MISSING; do echo "$pkg" >&2; done
    while [ "$1" != -o ]; do shift; done
    out="$2"; shift 2
    for pkg; do
      to="$out"
      case "$out" in */) to="$out${pkg##*/}" ;; esac
      echo "$pkg" >> "$FAKE_GO/built"
      echo half > "$to"
      [ "$pkg" != "$FAIL" ] || { echo "$pkg does not compile" >&2; exit 1; }
      echo "binary of $pkg" > "$to"
    done ;;
esac
`

// useFakeGo puts the fake before everything else in PATH and returns what
// tells which packages were built since it was last asked.
func useFakeGo(t *testing.T) (built func() []string) {
	t.Helper()
	dir := t.TempDir()
	writeTestFile(t, filepath.Join(dir, "go"), fakeGo, 0o755)
	for _, file := range stageFiles {
		path := filepath.Join(dir, "kwok", "kustomize", "stage", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeTestFile(t, path, "kind: Stage\n", 0o644)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("FAKE_GO", dir)
	t.Setenv(originVariable, "")
	log := filepath.Join(dir, "built")
	return func() []string {
		data, err := os.ReadFile(log)
		if err != nil {
			return nil
		}
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
		packages := strings.Fields(string(data))
		slices.Sort(packages)
		return packages
	}
}

func writeTestFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

var allPackages = []string{
	"go.etcd.io/etcd/server/v3",
	"k8s.io/kubernetes/cmd/kube-apiserver",
	"k8s.io/kubernetes/cmd/kube-controller-manager",
	"k8s.io/kubernetes/cmd/kube-scheduler",
	"sigs.k8s.io/kwok/cmd/kwok",
}

func TestBuildMakesOnlyMissingPrograms(t *testing.T) {
	built := useFakeGo(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}
	build := func(spec BuildSpec) Binaries {
		t.Helper()
		binaries, err := Build(t.Context(), spec, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return binaries
	}
	wantBuilt := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, built()); diff != "" {
			t.Errorf("built %s (-want +got):\n%s", when, diff)
		}
	}

	binaries := build(spec)
	wantBuilt("in an empty folder", allPackages...)

	build(spec)
	wantBuilt("when everything is there")

	if err := os.Remove(binaries.Path("etcd")); err != nil {
		t.Fatal(err)
	}
	build(spec)
	wantBuilt("when etcd is missing", "go.etcd.io/etcd/server/v3")

	writeTestFile(t, binaries.Path("kwok.stamp"), "another source", 0o600)
	build(spec)
	wantBuilt("when kwok was built from something else", "sigs.k8s.io/kwok/cmd/kwok")

	spec.Kubectl = true
	build(spec)
	wantBuilt("when kubectl is wanted, too", "k8s.io/kubernetes/cmd/kubectl")

	spec.Nodes = true
	build(spec)
	wantBuilt("when real nodes are wanted, too",
		".", // pause
		"github.com/containerd/containerd/v2/cmd/containerd",
		"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
		"github.com/containerd/containerd/v2/cmd/ctr",
		"github.com/containernetworking/plugins/plugins/ipam/host-local",
		"github.com/containernetworking/plugins/plugins/main/bridge",
		"github.com/containernetworking/plugins/plugins/main/loopback",
		"github.com/containernetworking/plugins/plugins/meta/portmap",
		"k8s.io/kubernetes/cmd/kube-proxy",
		"k8s.io/kubernetes/cmd/kubelet",
	)
	build(spec)
	wantBuilt("when all of that is there")
}

func TestABuildThatFailsLeavesNoBinaryAndIsRepeated(t *testing.T) {
	built := useFakeGo(t)
	t.Setenv("FAIL", "k8s.io/kubernetes/cmd/kube-scheduler")
	t.Setenv("MISSING", "k8s.io/klog k8s.io/api/core/v1")
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}
	_, err := Build(t.Context(), spec, io.Discard)
	want := "exit status 1\nk8s.io/kubernetes/cmd/kube-scheduler does not compile"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error is %v, want what the compiler said, and nothing of the packages before:\n%s", err, want)
	}
	for _, name := range []string{"kube-apiserver", "kube-scheduler", ".build"} {
		if _, err := os.Stat(filepath.Join(spec.Dir, DefaultVersion, name)); !os.IsNotExist(err) {
			t.Errorf("%s after a build that failed: %v, want that it does not exist", name, err)
		}
	}
	t.Setenv("FAIL", "")
	built()
	binaries, _ := mustBuild(t, spec)
	wantPrograms(t, binaries, fromSource())
	// The failure may have ended another target that was built beside it, which is built again, too.
	packages := built()
	for _, pkg := range allPackages[1:4] {
		if !slices.Contains(packages, pkg) {
			t.Errorf("built after the failure: %s, want %s among them", packages, pkg)
		}
	}
}

func TestBuildersOfOneFolderShareTheWork(t *testing.T) {
	built := useFakeGo(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, err := Build(t.Context(), spec, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if diff := cmp.Diff(allPackages, built()); diff != "" {
		t.Errorf("four builders built (-want +got):\n%s", diff)
	}
}

// took returns the duration of a build on this machine.
var took = regexp.MustCompile(`(linking, |done in )\d+s`)

func TestBuildReportsItsProgress(t *testing.T) {
	useFakeGo(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}
	build := func() string {
		t.Helper()
		var progress bytes.Buffer
		if _, err := Build(t.Context(), spec, &progress); err != nil {
			t.Fatal(err)
		}
		return took.ReplaceAllString(progress.String(), "${1}0s")
	}
	t.Setenv("MISSING", "k8s.io/klog k8s.io/api/core/v1")
	want := `building etcd, kwok and Kubernetes 1.37.1 from source; about 8 min on two cores the first time, less on more, seconds from the build cache
1/3 etcd: 2 packages to compile
2/3 kwok: 2 packages to compile
3/3 kube-apiserver, kube-controller-manager, kube-scheduler: 2 packages to compile
done in 0s: ` + filepath.Join(spec.Dir, DefaultVersion) + "\n"
	// Two targets are built at a time, and report in any order.
	if diff := cmp.Diff(want, sortTargets(build())); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}

	t.Setenv("MISSING", "")
	if err := os.RemoveAll(filepath.Join(spec.Dir, DefaultVersion)); err != nil {
		t.Fatal(err)
	}
	if progress, want := build(), "1/3 etcd: everything is compiled, linking, 0s\n"; !strings.Contains(progress, want) {
		t.Errorf("progress with everything in the build cache is\n%swant\n%s", progress, want)
	}
}

// sortTargets sorts the lines between the first one and the last one.
func sortTargets(progress string) string {
	lines := strings.Split(strings.TrimSuffix(progress, "\n"), "\n")
	slices.Sort(lines[1 : len(lines)-1])
	return strings.Join(lines, "\n") + "\n"
}

func TestBuildWithoutGoSuggestsItsDownload(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Build(t.Context(), BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}, io.Discard)
	want := "build control plane 1.37.1: the go command is not in PATH; Go 1.26 or later is needed to build the control plane: https://go.dev/dl"
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
}

func TestBuildRefusesAVersionThatItDoesNotKnow(t *testing.T) {
	_, err := Build(t.Context(), BuildSpec{Version: "1.37.2", Dir: t.TempDir()}, io.Discard)
	want := `there is no sandbox of Kubernetes "1.37.2"; choose one of 1.37.1, 1.36.4, 1.35.4, 1.34.4, 1.33.13, 1.32.13, 1.31.14`
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
}
