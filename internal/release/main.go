// Command release makes what a version of Ebbtide is published as, from the checkout that
// it runs in: the image of the manager, archives of the binaries for all platforms, the
// chart, the licences of everything in them, a bill of materials (SBOM) for each, and the
// checksums. It publishes nothing. Platforms such as linux/amd64 limit a release to them.
//
// The same commit and the same Go become the same bytes, whoever makes them; reproduce checks
// that with the manager. A module under a licence that is not known ends it.
package main

import (
	"context"
	"errors"
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
	verb, out, platforms := "", "", []string(nil)
	switch {
	case len(args) == 1 && args[0] == "reproduce":
		verb = args[0]
	case len(args) >= 2 && (args[0] == "image" || args[0] == "all"):
		verb, out, platforms = args[0], args[1], args[2:]
	default:
		return errors.New("usage: release image|all <folder to make> [<platform>...], or release reproduce")
	}
	r, err := newRelease(out, os.Stdout)
	if err != nil {
		return err
	}
	if err := r.limit(platforms); err != nil {
		return err
	}
	switch verb {
	case "reproduce":
		return r.reproduce(ctx)
	case "image":
		return r.image(ctx)
	default:
		return r.all(ctx)
	}
}
