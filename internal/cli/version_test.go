package cli

import (
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/version"
)

func TestThePluginSaysItsVersion(t *testing.T) {
	t.Parallel()
	for _, argument := range []string{"version", "--version"} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := Run(t.Context(), []string{argument}, streams)
		if want := version.Line("kubectl-ebbtide") + "\n"; code != 0 || out.String() != want || errOut.Len() > 0 {
			t.Errorf("%s: code %d, %q, %q; want %q", argument, code, out, errOut, want)
		}
	}
}
