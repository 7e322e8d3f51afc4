//go:build !unix

package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// newSandbox is there to say where the verb works. Elsewhere processes have neither
// groups nor the signals by which a sandbox ends them all.
func newSandbox(genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:                "sandbox",
		Short:              "Run a real control plane on this machine (on Linux, macOS and in WSL only)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("the sandbox runs on Linux and macOS only; on Windows use the plugin for Linux in WSL")
		},
	}
}
