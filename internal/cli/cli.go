// Package cli is the kubectl plugin, with one file for each verb. Results go to standard output,
// progress and errors to standard error. Errors name the invalid value or what to do.
// Exit codes: 0 done, 1 error, 2 blocked or not done in time, 3 no manager acts, 4 a right is
// missing, 130 interrupted.
package cli

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/version"
)

// Run runs the plugin with these arguments and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := newRoot(streams)
	root.SetArgs(args)
	return report(streams.ErrOut, root.ExecuteContext(ctx))
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "kubectl-ebbtide",
		Short: "Drain nodes for maintenance and return them to service",
		// kubectl shows the plugin as a command of its own.
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ebbtide"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !showVersion {
				return cmd.Help()
			}
			_, err := fmt.Fprintln(streams.Out, version.Line("kubectl-ebbtide"))
			return err
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version of the plugin")
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetUsageFunc(usage)
	addGroup(root, "Inspection Commands:", newPlan(streams), newStatus(streams), newWatch(streams), newWhy(streams), newLint(streams), newAgents(streams))
	addGroup(root, "Maintenance Commands:", newDrain(streams), newCordon(streams), newComplete(streams), newRollout(streams), newRelease(streams), newBridge(streams))
	addGroup(root, "Lock Commands:", newLock(streams), newUnlock(streams))
	root.AddCommand(newVersion(streams))
	return root
}

// verb is a command of the plugin.
type verb interface {
	// Complete reads the arguments and Validate checks them, both without a cluster.
	Complete(args []string) error
	Validate() error
	Run(ctx context.Context) error
}

func runs(v verb) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := v.Complete(args); err != nil {
			return err
		}
		if err := v.Validate(); err != nil {
			return err
		}
		return v.Run(cmd.Context())
	}
}

// addGroup adds verbs below a title of the help.
func addGroup(root *cobra.Command, title string, verbs ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, verb := range verbs {
		verb.GroupID = title
	}
	root.AddCommand(verbs...)
}

// commandName returns how the user calls the plugin: through kubectl if it is installed, otherwise
// from the checkout.
func commandName() command.Quoted {
	if _, err := exec.LookPath("kubectl-ebbtide"); err == nil {
		return command.Join("kubectl ebbtide")
	}
	return command.Join("go run ./cmd/kubectl-ebbtide")
}

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
