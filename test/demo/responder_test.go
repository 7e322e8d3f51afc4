package demo

import (
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// The commands in the README of the responder do what it says, on an API server that has the
// gate: a pod that names it is evicted when it says so, and not before.
func TestLongCommandsOfTheResponderExample(t *testing.T) {
	t.Parallel()
	script := commands(t, "../../examples/responder/README.md")
	for _, line := range []string{"go build -o .bin/ ./examples/responder", ".bin/responder &", "kill %1"} {
		if !strings.Contains(script, line+"\n") {
			t.Errorf("the README does not say: %s", line)
		}
		script = strings.Replace(script, line+"\n", "", 1)
	}
	if err := sandbox.CheckEvictionRequests(sandbox.RequestedVersion()); err != nil {
		return // nothing to be shown on an older Kubernetes
	}
	cluster, kubectl := startWith(t, sandbox.Spec{Nodes: 3, EvictionRequests: true})
	if _, err := cluster.StartProgram(t.Context(), "examples/responder", "--kubeconfig="+cluster.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	run(t, cluster, kubectl, script, "Waits until the data of db-0 is saved.", "evictionrequest.lifecycle.k8s.io/move-db condition met")
}
