package demo

import (
	"context"
	"testing"

	"github.com/go-logr/logr/testr"

	"ebbtide.dev/ebbtide/internal/sandbox/provider"
)

// The commands in the README of the example do what it says, one after the other.
func TestCommandsOfTheMachinesExample(t *testing.T) {
	t.Parallel()
	script := commands(t, "../../examples/machines/README.md")
	cluster, kubectl := start(t)
	stop := provider.Start(context.WithoutCancel(t.Context()), cluster.Config, testr.New(t))
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	run(t, cluster, kubectl, script, "Backup (owner the team of the databases)", "machine.ebbtide.dev/worker-1 condition met")
}
