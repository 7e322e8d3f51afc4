// Command controlplane regenerates the wrapper modules next to it: one folder
// each for Kubernetes, etcd and kwok, with the go.mod and go.sum from which
// `make controlplane` and the sandbox build their binaries.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

//go:generate go run .

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := sandbox.GenerateWrappers(ctx, "."); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
