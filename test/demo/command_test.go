package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

func TestMain(m *testing.M) {
	// As in the command that shows the demos.
	log.SetLogger(logr.Discard())
	err := prebuilt.Check()
	if err == nil && os.Getenv(holderEnv) != "" {
		err = hold(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// commands are those that a README has its reader run.
func commands(t *testing.T, readme string) string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)<!-- run: .*? -->\n```\n(.*?)```").FindAllSubmatch(text, -1) {
		script.Write(block[1])
	}
	return script.String()
}

// byMake gives the user of a page the plugin, which `make programs` has built for the tests.
const byMake = "make build\nexport PATH=\"$PWD/.bin:$PATH\"\n"

// Each page for users whose commands are to be run has them run, on a cluster of its own
// that is as new as that of `sandbox up`.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Dir(prebuilt.Path(t, "kubectl-ebbtide"))
	cluster, kubectl := start(t)
	ran := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)<!-- run: in test/demo -->\n```\n(.*?)```(?:\n\n<!-- printed: by these commands -->\n```\n(.*?)```)?").FindAllSubmatch(text, -1) {
			ran++
			script := strings.Replace(string(block[1]), byMake, "", 1)
			output := run(t, cluster, kubectl, "export PATH="+plugin+":$PATH\n"+script)
			for line := range strings.Lines(string(block[2])) {
				if want := shape(line); !strings.Contains(shape(output), want) {
					t.Errorf("the commands of %s do not print %q:\n%s", filepath.Base(page), want, output)
				}
			}
		}
	}
	if ran == 0 {
		t.Error("no page has commands")
	}
}

// shape is what two runs print alike: all but spaces, ages and other numbers.
func shape(text string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`\d+`).ReplaceAllString(text, "0")), " ")
}

// start starts what `sandbox up` does.
func start(t *testing.T) (cluster *sandbox.Cluster, kubectl string) {
	t.Helper()
	return startWith(t, sandbox.Spec{Nodes: 3})
}

func startWith(t *testing.T, spec sandbox.Spec) (cluster *sandbox.Cluster, kubectl string) {
	t.Helper()
	binaries, err := prebuilt.ControlPlane(sandbox.BuildSpec{Kubectl: true})
	if err != nil {
		t.Fatal(err)
	}
	if spec.Programs, err = sandbox.ProgramDir(); err != nil {
		t.Fatal(err)
	}
	cluster, err = sandbox.Start(t.Context(), binaries, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := cluster.StartManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cluster, binaries.Path("kubectl")
}

// run runs commands in the root of the repository until one of them fails, wants these
// words among what they print, and returns it all.
func run(t *testing.T, cluster *sandbox.Cluster, kubectl, script string, words ...string) string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script)
	shell.Dir = "../.."
	shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "KUBECACHEDIR="+t.TempDir(),
		"PATH="+filepath.Dir(kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("run the commands: %v\n%s", err, output)
	}
	for _, words := range words {
		if !strings.Contains(string(output), words) {
			t.Errorf("the commands do not print %q:\n%s", words, output)
		}
	}
	return string(output)
}
