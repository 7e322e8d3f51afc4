package demo

import (
	"strings"
	"testing"
)

// The evacuator of the example is started by the test, so that it ends with it.
var byTheTest = []string{"go build -o .bin/ ./examples/leader", ".bin/leader &", "kill %1"}

// The commands in the README of the example do what it says, one after the other.
func TestLongCommandsOfTheLeaderExample(t *testing.T) {
	t.Parallel()
	script := commands(t, "../../examples/leader/README.md")
	for _, line := range byTheTest {
		if !strings.Contains(script, line+"\n") {
			t.Errorf("the README does not say: %s", line)
		}
		script = strings.Replace(script, line+"\n", "", 1)
	}
	cluster, kubectl := start(t)
	if _, err := cluster.StartProgram(t.Context(), "examples/leader", "--kubeconfig="+cluster.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	run(t, cluster, kubectl, script, "Pod db-1 is asked to lead.", "nodemaintenance.ebbtide.dev/kernel-update condition met")
}
