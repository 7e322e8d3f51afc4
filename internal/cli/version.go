package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/version"
)

// newVersion is the verb version, as people are used to from kubectl.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version of the plugin this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Line("kubectl-ebbtide"))
			return err
		},
	}
}
