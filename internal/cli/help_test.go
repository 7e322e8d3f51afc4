package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestHelpGroupsTheVerbs(t *testing.T) {
	t.Parallel()
	got := run(t.Context())
	at := 0
	for _, line := range []string{
		"\nInspection Commands:\n", "\n  status ", "\n  watch ", "\n  why ", "\nMaintenance Commands:\n", "\n  drain ", "\n  cordon ", "\n  complete ", "\nLock Commands:\n", "\n  lock ", "\n  unlock ",
	} {
		found := strings.Index(got.Out, line)
		if found < 0 || strings.HasPrefix(line, "\n") && !strings.HasPrefix(line, "\n ") && found < at {
			t.Errorf("%q is missing, or not in order, in\n%s", line, got.Out)
		}
		at = max(at, found)
	}
	if strings.Contains(got.Out, "completion") || got.Code != 0 || got.ErrOut != "" {
		t.Errorf("exit code %d, it tells %q, and prints\n%s", got.Code, got.ErrOut, got.Out)
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	var verbs [][]string
	var walk func(cmd *cobra.Command, path []string)
	walk = func(cmd *cobra.Command, path []string) {
		verbs = append(verbs, path)
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.Name() != "help" {
				walk(sub, append(path[:len(path):len(path)], sub.Name()))
			}
		}
	}
	walk(newRoot(genericiooptions.IOStreams{}), nil)
	if len(verbs) < 15 {
		t.Errorf("only %d verbs were found", len(verbs))
	}
	for _, path := range verbs {
		got := run(t.Context(), append(path, "--help")...)
		for line := range strings.Lines(got.Out) {
			line = strings.TrimRight(line, "\n")
			// A command that is to be copied is not broken, and nothing is our own in that about help.
			ours := !strings.HasPrefix(strings.TrimSpace(line), "kubectl ebbtide ") && !strings.HasPrefix(line, "Use ")
			if len(line) > columns && ours {
				t.Errorf("kubectl ebbtide %s --help: %d columns: %s", strings.Join(path, " "), len(line), line)
			}
		}
	}
}

// The flags of kubectl drain are known by their names and values.
func TestDrainHasTheFlagsOfKubectl(t *testing.T) {
	t.Parallel()
	flags := newDrain(genericiooptions.IOStreams{}).Flags()
	for name, standard := range map[string]string{
		"chunk-size": "500", "delete-emptydir-data": "false", "disable-eviction": "false", "dry-run": "none", "force": "false", "grace-period": "-1",
		"ignore-daemonsets": "false", "pod-selector": "", "selector": "", "skip-wait-for-delete-timeout": "0", "timeout": "0s",
	} {
		if flag := flags.Lookup(name); flag == nil || flag.DefValue != standard {
			t.Errorf("--%s is %+v, want one of which %q is the default", name, flag, standard)
		}
	}
}

// docs/scripts.md says the same as the plugin about each flag of kubectl drain: rejected,
// without effect, or another field.
func TestScriptsPageListsTheFlagsOfKubectlDrain(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range drainFlags {
		does := "`spec."
		switch {
		case f.refused != "":
			does = "rejected"
		case strings.HasPrefix(f.becomes, "has no effect"):
			does = "no effect"
		}
		if row := "| `--" + f.name + "` | " + does; !strings.Contains(string(page), row) {
			t.Errorf("docs/scripts.md has no row that begins with %q", row)
		}
	}
}
