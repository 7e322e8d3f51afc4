package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A program is linked once, however many sandboxes run it: the second does without a go
// command. It takes the place of one that is there, which may run.
func TestAProgramIsLinkedOnce(t *testing.T) {
	built := useFakeGo(t)
	root := t.TempDir()
	programs, err := ProgramDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		linked.folders = map[string]bool{}
		if err := os.Remove(filepath.Join(programs, "story")); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	if err := buildProgram(t.Context(), root, "examples/story", filepath.Join(dir, "story")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"./examples/story"}, built()); diff != "" {
		t.Errorf("built (-want +got):\n%s", diff)
	}
	t.Setenv("PATH", t.TempDir())
	other := filepath.Join(t.TempDir(), "story")
	writeTestFile(t, other, "what was there before", 0o600)
	if err := buildProgram(t.Context(), root, "examples/story", other); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "story"), other} {
		if text, err := os.ReadFile(path); err != nil || string(text) != "binary of ./examples/story\n" {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
	if err := buildProgram(t.Context(), root, "examples/none", other); err == nil {
		t.Error("a program is built without a go command")
	}
}

// A compilation reports what it compiles, and nothing if everything is up to date.
func TestACompilationReportsWhatIsCompiled(t *testing.T) {
	built := useFakeGo(t)
	c := Compilation{Label: "1/2 tool", Dir: t.TempDir(), Packages: []string{"example.com/tool"}, Into: filepath.Join(t.TempDir(), "tool")}
	for missing, want := range map[string]string{"": "", "example.com/a example.com/b": "1/2 tool: 2 packages to compile\n"} {
		t.Setenv("MISSING", missing)
		var said bytes.Buffer
		if err := Compile(t.Context(), c, &said); err != nil || said.String() != want {
			t.Errorf("with %q missing it says %q, want %q; error %v", missing, said.String(), want, err)
		}
		if packages := built(); len(packages) != 1 {
			t.Errorf("built %v", packages)
		}
	}
	t.Setenv("FAIL", "example.com/tool")
	if err := Compile(t.Context(), c, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "1/2 tool") || !strings.Contains(err.Error(), "does not compile") {
		t.Errorf("a failed compilation says %v", err)
	}
}

// What is missing is named, and nothing is built.
func TestFindBuildsNothing(t *testing.T) {
	built := useFakeGo(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}
	_, err := Find(spec)
	if err == nil || !strings.Contains(err.Error(), "etcd") || !strings.Contains(err.Error(), "kube-scheduler") {
		t.Errorf("with nothing built it says %v", err)
	}
	if packages := built(); packages != nil {
		t.Errorf("built %v", packages)
	}
	want, err := Build(t.Context(), spec, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Find(spec); err != nil || got != want {
		t.Errorf("found %v, %v, want %v", got, err, want)
	}
	spec.Kubectl = true
	if _, err := Find(spec); err == nil || !strings.Contains(err.Error(), "kubectl") || strings.Contains(err.Error(), "etcd") {
		t.Errorf("without kubectl it says %v", err)
	}
}
