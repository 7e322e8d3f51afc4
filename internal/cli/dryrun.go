package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const dryRunNone, dryRunServer, dryRunClient = "none", "server", "client"

// dryRun is whether a verb does what it says.
type dryRun struct{ Mode string }

func (d *dryRun) addFlag(cmd *cobra.Command) {
	modes := []string{dryRunNone, dryRunServer, dryRunClient}
	cmd.Flags().StringVar(&d.Mode, "dry-run", dryRunNone, `Must be "none", "server", or "client". If client, only say what would be done. If server, have the API server check it without storing it.`)
	// The flag is not missing.
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses what is no way to try.
func (d *dryRun) check() error {
	if !slices.Contains([]string{dryRunNone, dryRunServer, dryRunClient}, d.Mode) {
		return fmt.Errorf("--dry-run must be none, server or client, not %q", d.Mode)
	}
	return nil
}

// options is what the API server is told of it.
func (d *dryRun) options() []string {
	if d.Mode == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// only is what follows a sentence that has not become true.
func (d *dryRun) only() string {
	switch d.Mode {
	case dryRunServer:
		return " (server dry run)"
	case dryRunClient:
		return " (dry run)"
	}
	return ""
}
