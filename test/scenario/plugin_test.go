package scenario

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// Whoever has put the files of an archive into the PATH has kubectl run the plugin and
// complete its arguments, down to the names of objects.
func TestKubectlFindsAndCompletesThePlugin(t *testing.T) {
	t.Parallel()
	m := newTerminal(t, cluster.Spec{})
	plugin := m.shell(t, "command -v kubectl-ebbtide").Text
	completer := filepath.Join(filepath.Dir(plugin), "kubectl_complete-ebbtide")
	script, err := os.ReadFile("../../cmd/kubectl-ebbtide/kubectl_complete-ebbtide")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(completer, script, 0o700); err != nil {
		t.Fatal(err)
	}

	if got := m.shell(t, "kubectl plugin list"); got.Code != 0 || !slices.Contains(strings.Split(got.Text, "\n"), strings.TrimSpace(plugin)) {
		t.Errorf("kubectl plugin list: exit code %d\n%s", got.Code, got.Text)
	}
	if got := m.shell(t, "kubectl ebbtide --help"); got.Code != 0 || !strings.Contains(got.Text, "kubectl ebbtide [command]") {
		t.Errorf("kubectl ebbtide --help: exit code %d\n%s", got.Code, got.Text)
	}
	for typed, want := range map[string]string{
		"ebbtide loc": "lock",
		"ebbtide lock -n " + m.namespace + " pdb/": "pdb/web",
		"ebbtide lock --dry-run ser":               "server",
	} {
		if got := m.completed(t, typed); !slices.Contains(got, want) {
			t.Errorf("kubectl %s<TAB> suggests %q, want %s", typed, got, want)
		}
	}
}

// A program that executes a text/template keeps all methods of all types, so it is half as large
// again.
func TestPluginExecutesNoTemplate(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(prebuilt.Path(t, "kubectl-ebbtide"))
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(50 << 20); info.Size() > most {
		t.Errorf("the plugin has %d MiB, at most %d are allowed", info.Size()>>20, most>>20)
	}
}

// completed is what kubectl suggests for the last word, as its completion script asks it.
func (m terminal) completed(t *testing.T, typed string) (words []string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), m.kubectl, append([]string{"__complete"}, strings.Split(typed, " ")...)...)
	command.Env = m.env
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl __complete %s: %v\n%s", typed, err, output)
	}
	for line := range strings.Lines(string(output)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, word)
	}
	return words
}
