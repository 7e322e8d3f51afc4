package prebuilt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAMissingProgramNamesTheTargetThatBuildsIt(t *testing.T) {
	for name, target := range map[string]string{
		"ebbtide": "make programs", "promtool": "make programs-all", "helm": "make node-binaries",
	} {
		if err := check(t.TempDir(), name); err == nil || !strings.Contains(err.Error(), name) || !strings.HasSuffix(err.Error(), "run `"+target+"`") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if err := check(t.TempDir(), "emacs"); err == nil || !strings.Contains(err.Error(), `"emacs"`) {
		t.Errorf("a program that no test runs: %v", err)
	}
}

func TestAProgramMustBeNewerThanItsSource(t *testing.T) {
	early, late := time.Now().Add(-time.Hour), time.Now()
	for name, test := range map[string]struct {
		changed, program string
		stale            bool
	}{
		"its own source":      {changed: "internal/core/decide.go", program: "ebbtide", stale: true},
		"what it embeds":      {changed: "charts/sandbox.yaml", program: "ebbtide", stale: true},
		"its modules":         {changed: "go.sum", program: "ebbtide", stale: true},
		"a test":              {changed: "internal/core/decide_test.go", program: "ebbtide"},
		"a document":          {changed: "docs/guide.md", program: "ebbtide"},
		"another module":      {changed: "test/alert/promtool/go.mod", program: "ebbtide"},
		"the module it is of": {changed: "test/alert/promtool/go.mod", program: "promtool", stale: true},
		"our source, not its": {changed: "internal/core/decide.go", program: "promtool"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range []string{
				".bin/programs/ebbtide", ".bin/programs/promtool", "go.mod", "api/api.go", "charts/chart.yaml", "cmd/cmd.go",
				"examples/example.go", "internal/core/other.go", "test/alert/promtool/go.sum", test.changed,
			} {
				write(t, filepath.Join(root, file), early)
			}
			write(t, filepath.Join(root, test.changed), late)

			err := check(root, test.program)

			if stale := err != nil; stale != test.stale {
				t.Errorf("stale is %t: %v", stale, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.changed) {
				t.Errorf("%v, want the file named", err)
			}
		})
	}
}

func write(t *testing.T, path string, changed time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, changed, changed); err != nil {
		t.Fatal(err)
	}
}
