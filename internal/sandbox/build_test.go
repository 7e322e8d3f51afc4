package sandbox

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeGo stands for the go command: it notes what it is asked to build and
// "builds" a text. It fails for the package in FAIL.
const fakeGo = `#!/bin/sh
case "$1 $*" in
  *" -m -f "*) echo "$FAKE_GO/kwok" ;;
  build*)
    for last; do :; done
    while [ "$1" != -o ]; do shift; done
    echo "$last" >> "$FAKE_GO/built"
    echo half > "$2"
    [ "$last" != "$FAIL" ] || { echo "$last does not compile" >&2; exit 1; }
    echo "binary of $last" > "$2" ;;
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

func TestBuildBuildsWhatIsMissingAndNothingElse(t *testing.T) {
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
}

func TestABuildThatFailsLeavesNoBinaryAndIsRepeated(t *testing.T) {
	built := useFakeGo(t)
	t.Setenv("FAIL", "k8s.io/kubernetes/cmd/kube-scheduler")
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}
	_, err := Build(t.Context(), spec, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "kube-scheduler does not compile") {
		t.Errorf("error is %v, want what the compiler said", err)
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, DefaultVersion, "kube-scheduler")); !os.IsNotExist(err) {
		t.Errorf("the binary of a failed build: %v, want that it does not exist", err)
	}
	built()
	t.Setenv("FAIL", "")
	if _, err := Build(t.Context(), spec, io.Discard); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"k8s.io/kubernetes/cmd/kube-scheduler"}, built()); diff != "" {
		t.Errorf("built after the failure (-want +got):\n%s", diff)
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

func TestBuildSaysWhatItDoes(t *testing.T) {
	useFakeGo(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}
	var progress bytes.Buffer
	if _, err := Build(t.Context(), spec, &progress); err != nil {
		t.Fatal(err)
	}
	want := `building Kubernetes 1.37.1, etcd and kwok from source; about six minutes the first time, seconds from the build cache
1/5 etcd
2/5 kwok
3/5 kube-apiserver
4/5 kube-controller-manager
5/5 kube-scheduler
built in 0s: ` + filepath.Join(spec.Dir, DefaultVersion) + "\n"
	if diff := cmp.Diff(want, progress.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestBuildWithoutGoSaysWhereToGetIt(t *testing.T) {
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
