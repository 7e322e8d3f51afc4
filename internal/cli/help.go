package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// columns is the width of the narrowest terminal.
const columns = 80

// usage prints cobra's default usage with flags wrapped to the terminal. A template would be
// shorter, but keeps all methods of all types in the program, which are 23 MB.
func usage(cmd *cobra.Command) error {
	to := cmd.OutOrStderr()
	defer cmd.SetOut(to)
	var printed strings.Builder
	cmd.SetOut(&printed)
	if err := new(cobra.Command).UsageFunc()(cmd); err != nil {
		return err
	}
	text := printed.String()
	for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
		trim := func(usages string) string { return strings.TrimRight(usages, " \n") }
		text = strings.Replace(text, trim(flags.FlagUsages()), trim(flags.FlagUsagesWrapped(columns)), 1)
	}
	_, err := io.WriteString(to, text)
	return err
}
