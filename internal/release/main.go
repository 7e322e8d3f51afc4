// Command release builds what a version is published as, from the checkout: the image, archives
// for all platforms, the chart, licences, a bill of materials for each, and checksums. It
// publishes nothing. The same commit and the same Go give the same bytes. A dependency with an
// unknown licence is an error. Arguments such as linux/amd64 limit the platforms.
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
