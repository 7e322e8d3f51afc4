// Command build builds what tests run, before they run: the control plane, and the programs of
// the sets that are its arguments.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run builds kubectl for every set, and what real nodes run if an argument is "nodes".
func run(ctx context.Context, args []string) error {
	_, err := sandbox.Build(ctx, sandbox.BuildSpec{Kubectl: true, Nodes: slices.Contains(args, "nodes")}, os.Stderr)
	if err != nil {
		return err
	}
	var sets []prebuilt.Set
	for _, arg := range args {
		if arg != "nodes" {
			sets = append(sets, prebuilt.Set(arg))
		}
	}
	return prebuilt.Make(ctx, os.Stderr, sets...)
}
