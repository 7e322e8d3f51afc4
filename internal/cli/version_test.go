package cli

import (
	"path/filepath"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/version"
)

func TestPluginPrintsItsVersion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, {"--version"}} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := Run(t.Context(), args, streams)
		if want := version.Line("kubectl-ebbtide") + "\n"; code != 0 || out.String() != want || errOut.Len() > 0 {
			t.Errorf("%v: code %d, %q, %q; want %q", args, code, out, errOut, want)
		}
	}
}
