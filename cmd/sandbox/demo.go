package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/sandbox/demo"
)

// story is a demo and the pages that continue it.
type story struct {
	name   string
	show   func(demo.Demo, context.Context) error
	readOn string
}

// stories are all demos. The first one is the default.
var stories = []story{
	{"drain", demo.Demo.Run, "README.md, docs/layout.md"},
	{"machines", demo.Demo.RunMachines, "examples/machines/README.md, docs/design/0006-machines.md"},
	{"node", demo.Demo.RunNodes, "docs/static-pods.md, docs/shutdown.md"},
	{"fleet", demo.Demo.RunRollout, "docs/fleet.md, docs/design/0041-rollouts.md"},
	{"eviction-request", demo.Demo.RunEvictionRequests, "docs/evictionrequests.md, examples/responder/README.md"},
}

func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [drain|machines|node|fleet|eviction-request]",
		Short: "Show a story on a cluster that is removed afterwards",
		Long: `Show a story on a cluster that is removed afterwards:

  drain             a node is drained; this is the default
  machines          Machines are created, and one of them is deleted
  node              a static pod leaves a real node and returns (Linux, root)
  fleet             twelve nodes get a new kernel, and one of them fails
  eviction-request  a pod responds to its EvictionRequest (Kubernetes 1.37)`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := storyOf(args)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			d := demo.Demo{Out: out, Progress: cmd.ErrOrStderr()}
			if err := chosen.show(d, cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(out, "\nRead on  %s\nPlay     make sandbox\n", chosen.readOn)
			return nil
		},
	}
}

// storyOf returns the story that the arguments name.
func storyOf(args []string) (story, error) {
	if len(args) == 0 {
		return stories[0], nil
	}
	var names []string
	for _, s := range stories {
		if s.name == args[0] {
			return s, nil
		}
		names = append(names, s.name)
	}
	return story{}, fmt.Errorf("there is no demo %q; choose one of %s", args[0], strings.Join(names, ", "))
}
