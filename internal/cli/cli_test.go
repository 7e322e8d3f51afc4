package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// result is what the user sees of a run.
type result struct {
	Code        int
	Out, ErrOut string
}

func run(ctx context.Context, args ...string) result {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := Run(ctx, args, streams)
	return result{code, out.String(), errOut.String()}
}

func TestBadInputIsRefusedWithWhatIsWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"unknown verb": {
			[]string{"drian"}, `there is no verb "drian": do you mean drain?`,
		},
		"nodes with commas": {
			[]string{"drain", "node-1,node-2"}, `"node-1,node-2" is no node: put blanks between nodes, not commas`,
		},
		"unknown flag": {
			[]string{"drain", "--node", "3"}, "unknown flag: --node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := result{Code: 1, ErrOut: "error: " + tt.want + "\n"}
			if diff := cmp.Diff(want, run(t.Context(), tt.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", strings.Join(tt.args, " "), diff)
			}
		})
	}
}
