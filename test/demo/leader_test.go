package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// The evacuator of the example is started by the test, so that it ends with it.
var byTheTest = []string{"go build -o .bin/ ./examples/leader", ".bin/leader &", "kill %1"}

// The commands in the README of the example do what it says, one after the other.
func TestCommandsOfTheLeaderExample(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../examples/leader/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)<!-- run: .*? -->\n```\n(.*?)```").FindAllSubmatch(readme, -1) {
		script.Write(block[1])
	}
	commands := script.String()
	for _, line := range byTheTest {
		if !strings.Contains(commands, line+"\n") {
			t.Errorf("the README does not say: %s", line)
		}
		commands = strings.Replace(commands, line+"\n", "", 1)
	}
	cluster, kubectl := start(t)
	if _, err := cluster.StartProgram(t.Context(), "examples/leader", "--kubeconfig="+cluster.Kubeconfig); err != nil {
		t.Fatal(err)
	}

	shell := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", commands)
	shell.Dir = "../.."
	shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "KUBECACHEDIR="+t.TempDir(),
		"PATH="+filepath.Dir(kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("run the commands: %v\n%s", err, output)
	}
	for _, words := range []string{"Pod db-1 is asked to lead.", "nodemaintenance.ebbtide.dev/kernel-update condition met"} {
		if !strings.Contains(string(output), words) {
			t.Errorf("the commands do not print %q:\n%s", words, output)
		}
	}
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
