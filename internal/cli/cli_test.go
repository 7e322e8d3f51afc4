package cli

import (
	"context"
	"os"
	"path/filepath"
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
	occupied := t.TempDir()
	if err := os.WriteFile(filepath.Join(occupied, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const versions = "1.37.1, 1.36.4, 1.35.4, 1.34.4, 1.33.13, 1.32.13, 1.31.14"
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
		"unknown sandbox verb": {
			[]string{"sandbox", "start"}, `unknown command "start" for "kubectl ebbtide sandbox"`,
		},
		"unknown flag": {
			[]string{"sandbox", "up", "--node", "3"}, "unknown flag: --node",
		},
		"version to build": {
			[]string{"sandbox", "build", "--kubernetes-version", "v1.37.1"},
			`there is no sandbox of Kubernetes "v1.37.1"; choose one of ` + versions,
		},
		"version to start": {
			[]string{"sandbox", "up", "--kubernetes-version", "latest"},
			`there is no sandbox of Kubernetes "latest"; choose one of ` + versions,
		},
		"version to show": {
			[]string{"sandbox", "demo", "--kubernetes-version", ""},
			`there is no sandbox of Kubernetes ""; choose one of ` + versions,
		},
		"negative nodes": {
			[]string{"sandbox", "up", "--nodes", "-1"}, "--nodes must be from 0 to 1000, not -1",
		},
		"too many nodes": {
			[]string{"sandbox", "up", "--nodes", "1001"}, "--nodes must be from 0 to 1000, not 1001",
		},
		"nodes in words": {
			[]string{"sandbox", "up", "--nodes", "three"},
			`invalid argument "three" for "--nodes" flag: strconv.ParseInt: parsing "three": invalid syntax`,
		},
		"folder with other files": {
			[]string{"sandbox", "up", "--dir", occupied}, occupied + " holds other files; choose an empty folder",
		},
		"argument that is not taken": {
			[]string{"sandbox", "down", "please"}, `unknown command "please" for "kubectl ebbtide sandbox down"`,
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

func TestAnInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := result{Code: 130, ErrOut: "interrupted\n"}
	got := run(ctx, "sandbox", "demo")
	got.ErrOut = got.ErrOut[strings.LastIndex(strings.TrimSuffix(got.ErrOut, "\n"), "\n")+1:]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
