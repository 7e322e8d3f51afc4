package cli

import (
	"context"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// result holds the visible outcome of a run.
type result struct {
	Code        int
	Out, ErrOut string
}

func run(ctx context.Context, args ...string) result {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := Run(ctx, append([]string{}, args...), streams)
	return result{code, out.String(), errOut.String()}
}
