package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// result holds the visible outcome of a run.
type result struct {
	Code        int
	Out, ErrOut string
}

func runWith(ctx context.Context, args ...string) result {
	var out, errOut bytes.Buffer
	code := run(ctx, args, &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

func TestBadInputIsRefusedWithItsFault(t *testing.T) {
	occupied := t.TempDir()
	if err := os.WriteFile(filepath.Join(occupied, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"start":                `unknown command "start" for "sandbox"`,
		"up --node 3":          "unknown flag: --node",
		"up --nodes -1":        "--nodes must be from 0 to 1000, not -1",
		"up --nodes 1001":      "--nodes must be from 0 to 1000, not 1001",
		"up --nodes three":     `invalid argument "three" for "--nodes" flag: strconv.ParseInt: parsing "three": invalid syntax`,
		"up --real-nodes 21":   "--real-nodes must be from 0 to 20, not 21",
		"up --dir " + occupied: occupied + " holds other files; choose an empty folder",
		"down please":          `unknown command "please" for "sandbox down"`,
		"node reboot node-1":   `the power of a node is off or on, not "reboot"`,
		"node off node-1 --dir " + occupied + "/no": "no sandbox is up in " + occupied + "/no",
		"demo nodes": `there is no demo "nodes"; choose one of drain, machines, node, fleet, eviction-request`,
	} {
		if diff := cmp.Diff(result{Code: 1, ErrOut: "error: " + want + "\n"}, runWith(t.Context(), strings.Fields(args)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

func TestUnknownKubernetesVersionIsRefused(t *testing.T) {
	t.Setenv("K8S_VERSION", "v1.37.1")
	want := result{Code: 1, ErrOut: `error: there is no sandbox of Kubernetes "v1.37.1"; choose one of 1.37.1, 1.36.4, 1.35.4, 1.34.4, 1.33.13, 1.32.13, 1.31.14` + "\n"}
	for _, args := range [][]string{{"build"}, {"demo"}, {"up", "--dir", t.TempDir()}} {
		if diff := cmp.Diff(want, runWith(t.Context(), args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

func TestInterruptedRunIsReported(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := runWith(ctx, "demo")
	if got.Code != 130 || !strings.HasSuffix(got.ErrOut, "interrupted\n") || got.Out != "" {
		t.Errorf("%+v, want exit code 130 and that it was interrupted", got)
	}
}

func TestHelpNamesVerbsAndVersions(t *testing.T) {
	got := runWith(t.Context())
	for _, want := range []string{"\n  build ", "\n  demo ", "\n  down ", "\n  node ", "\n  up ", "KUBERNETES=release", "1.36.4"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("help does not show %q:\n%s", want, got.Out)
		}
	}
	if got.Code != 0 || got.ErrOut != "" || strings.Contains(got.Out, "keep") {
		t.Errorf("%+v, want no error, and not the verb that users do not start", got)
	}
}
