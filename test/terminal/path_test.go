package terminal

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is printed into docs/guide.md")

// within is how long a step may take on a machine that is busy.
// A person previews a drain, starts it, sees it blocked and leaves it, asks why, does what
// is suggested, sees it go on, and gives the node back: what docs/guide.md shows is what is
// typed, and what is printed. README.md shortens it, which test/arch checks.
func TestTheWayOfAPerson(t *testing.T) {
	t.Parallel()
	shown := exchangeOf(t, "../../docs/guide.md")
	m := inASandbox(t)
	var printed strings.Builder
	for _, one := range shown.steps {
		picture, after := m.take(t, one)
		if one.interrupted {
			printed.WriteString(prompt + one.line + "\n" + picture + "\n^C\n" + after + "\n")
		} else {
			printed.WriteString(prompt + one.line + "\n" + after + "\n")
		}
		if line, any := missing(one.after, after); any && !*update {
			t.Errorf("%s does not print %q, but:\n%s", one.line, line, after)
		}
	}
	if *update {
		shown.replace(t, printed.String())
	}
}

// take types the line of a step, presses Ctrl-C when the picture is the one that is shown, and
// returns it with what is printed after that.
func (m terminal) take(t *testing.T, one step) (picture, after string) {
	t.Helper()
	m.enter(t, one.line)
	if !one.interrupted {
		return "", m.end(t, one.line)
	}
	picture = m.awaits(t, "the picture of "+one.line, func(screen string) bool {
		_, any := missing(one.picture, screen)
		return !any || *update && strings.Contains(screen, one.picture[len(one.picture)-1])
	})
	if _, below, onScreen := strings.Cut(picture, prompt+one.line+"\n"); onScreen {
		picture = below
	}
	m.press(t, "C-c")
	// Lines stay, and a picture goes. The terminal shows which key it was.
	after = strings.TrimPrefix(m.end(t, one.line), picture)
	return picture, strings.TrimPrefix(strings.TrimSpace(after), "^C")
}

// inASandbox is a terminal in the root of the repository, of somebody who has started a
// sandbox in it.
func inASandbox(t *testing.T) terminal {
	t.Helper()
	dir := t.TempDir()
	m := open(t, "PATH="+searchPath(t), "PS1="+prompt, "KUBECACHEDIR="+filepath.Join(dir, "cache"))
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if said, code := m.run(t, "cd "+root); code != 0 {
		t.Fatalf("cd: %s", said)
	}
	up, code := m.run(t, "sandbox up --dir "+filepath.Join(dir, "sandbox"))
	t.Cleanup(func() {
		if down, code := m.run(t, "sandbox down --dir "+filepath.Join(dir, "sandbox")); code != 0 || down != "The sandbox is down." {
			t.Errorf("sandbox down: exit code %d: %s", code, down)
		}
	})
	export := "export KUBECONFIG=" + filepath.Join(dir, "sandbox", "admin.kubeconfig")
	if code != 0 || !strings.Contains(up, export) {
		t.Fatalf("sandbox up: exit code %d: %s", code, up)
	}
	m.run(t, export)
	return m
}
