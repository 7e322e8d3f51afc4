package node

import (
	"bytes"
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// demoLines are the lines of the demo, in this order.
var demoLines = []string{
	`deleted   log-agent-\w+`,
	`ended     log-agent-\w+, \d+\.\ds after its deletion`,
	`held      edge-node-1: edge.yaml is put aside as .edge.yaml.ebbtide-held until no maintenance keeps its pod away.`,
	`off       the power of node-1 is switched off and on again`,
	`boots     node-1 has rebooted, and edge-node-1 is Held`,
	`complete  the work is done: stage Complete`,
	`runs      edge-node-1`,
}

// The demo drains a node, cuts its power and has all come back, and leaves nothing.
func TestLongTheDemoOfANode(t *testing.T) {
	dir := t.TempDir()
	before := trace(t, dir)
	program := prebuilt.Path(t, "sandbox")
	out, err := exec.Command("setpriv", "--bounding-set=-sys_admin", program, "demo", "node").CombinedOutput()
	if want := "what is missing:\n- CAP_SYS_ADMIN: "; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("where a node cannot be, the demo ends with %v, want %q\n%s", err, want, out)
	}
	var progress bytes.Buffer
	demo := exec.CommandContext(t.Context(), program, "demo", "node")
	demo.Dir, demo.Stderr, demo.Env = "../..", &progress, append(demo.Environ(), "TMPDIR="+dir)
	begin := time.Now()
	said, err := demo.Output()
	if err != nil {
		t.Fatalf("the demo ends with %v\n%s\n%s", err, said, &progress)
	}
	t.Logf("took %s", time.Since(begin).Round(time.Second))
	told := regexp.MustCompile(`(?s)` + strings.Join(demoLines, `\n.*`) + `\n.*edge-node-1 was down for \d+\.\ds, during a reboot of its node\.`)
	if !told.Match(said) {
		t.Errorf("the demo says\n%s\nwant %s", said, told)
	}
	patience.Eventually(t, "everything to be gone", func(context.Context) (string, bool) {
		diff := cmp.Diff(before, trace(t, dir))
		return diff, diff == ""
	})
}
