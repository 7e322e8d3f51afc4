// Command release makes what a version of Ebbtide is published as, from the checkout that
// it runs in: the image of the manager, archives of the binaries for all platforms, the
// chart, the licences of everything in them, a bill of materials (SBOM) for each, and the
// checksums. It publishes nothing.
//
// The same commit and the same Go become the same bytes, whoever makes them. A module under
// a licence that is not known ends it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 || args[0] != "image" && args[0] != "all" {
		return fmt.Errorf("usage: release image|all <folder to make>")
	}
	r, err := newRelease(args[1], os.Stdout)
	if err != nil {
		return err
	}
	if args[0] == "image" {
		return r.image(ctx)
	}
	return r.all(ctx)
}
