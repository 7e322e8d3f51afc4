package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// columns is how many every terminal has.
const columns = 80

// usage prints what cobra prints by default, with flags that fit a terminal. A template would be
// shorter. But a program that executes one keeps all methods of all types, which are 23 MB here.
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
