package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

func TestMain(m *testing.M) {
	// As in the command that shows the demos.
	log.SetLogger(logr.Discard())
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

// start starts what `sandbox up` does.
func start(t *testing.T) (cluster *sandbox.Cluster, kubectl string) {
	t.Helper()
	binaries, err := sandbox.Build(t.Context(), sandbox.BuildSpec{Kubectl: true}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err = sandbox.Start(t.Context(), binaries, sandbox.Spec{Nodes: 3})
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

// run runs commands in the root of the repository until one of them fails, and
// wants these words among what they print.
func run(t *testing.T, cluster *sandbox.Cluster, kubectl, script string, words ...string) {
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
}
