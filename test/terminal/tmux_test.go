package terminal

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// prompt is what the shell waits with.
const prompt = "$ "

// terminal is a shell in a window of tmux, 120 columns wide.
type terminal struct {
	socket string
}

// open starts a server of tmux for this test alone.
func open(t *testing.T, env ...string) terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("this test types into a terminal: install the package tmux (see test/packages.txt): %v", err)
	}
	m := terminal{socket: filepath.Join(t.TempDir(), "tmux")}
	shell := slices.Concat([]string{"-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "env"}, env, []string{"bash", "--norc", "--noprofile"})
	m.tmux(t, shell...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() })
	m.awaits(t, "the shell", func(screen string) bool { return strings.HasSuffix(screen, strings.TrimSpace(prompt)) })
	return m
}

func (m terminal) tmux(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command("tmux", append([]string{"-S", m.socket}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// screen is all that was printed in the window since it was cleared, without the end that is empty.
func (m terminal) screen(t *testing.T) string {
	t.Helper()
	return strings.TrimRight(m.tmux(t, "capture-pane", "-p", "-J", "-S", "-"), "\n ")
}

// press presses keys, such as C-c.
func (m terminal) press(t *testing.T, keys ...string) {
	t.Helper()
	m.tmux(t, append([]string{"send-keys"}, keys...)...)
}

// enter clears the window and types a line. It waits for the window to be clear, as the shell
// does that when it comes to it.
func (m terminal) enter(t *testing.T, line string) {
	t.Helper()
	m.press(t, "C-l")
	// What was there goes into the history.
	patience.Eventually(t, "a clear window", func(context.Context) (string, bool) {
		visible := strings.TrimSpace(m.tmux(t, "capture-pane", "-p"))
		return visible, visible == strings.TrimSpace(prompt)
	})
	m.tmux(t, "clear-history")
	m.tmux(t, "send-keys", "-l", line)
	m.press(t, "Enter")
}

// awaits waits until the screen is as it should be.
func (m terminal) awaits(t *testing.T, what string, is func(screen string) bool) (screen string) {
	t.Helper()
	patience.Eventually(t, what, func(context.Context) (string, bool) {
		screen = m.screen(t)
		return "\n" + screen, is(screen)
	})
	return screen
}

// run types a line, waits until the shell waits for the next one, and returns what was
// printed in between and the exit code.
func (m terminal) run(t *testing.T, line string) (printed string, code int) {
	t.Helper()
	m.enter(t, line)
	return m.end(t, line), m.code(t)
}

// end waits until the shell waits for the next line, and returns what was printed since this
// one was typed.
func (m terminal) end(t *testing.T, line string) (printed string) {
	t.Helper()
	m.awaits(t, "the end of "+line, func(screen string) bool {
		_, after, typed := strings.Cut(screen, prompt+line)
		text, ended := strings.CutSuffix(after, "\n"+strings.TrimSpace(prompt))
		printed = strings.TrimSpace(text)
		return typed && ended
	})
	return printed
}

// code is the exit code of the last command.
func (m terminal) code(t *testing.T) int {
	t.Helper()
	const ask = "echo $?"
	m.enter(t, ask)
	printed := m.end(t, ask)
	code, err := strconv.Atoi(printed)
	if err != nil {
		t.Fatalf("the exit code is %q", printed)
	}
	return code
}

// searchPath returns the PATH of a user who has the plugin and kubectl.
func searchPath(t *testing.T) string {
	t.Helper()
	dirs := []string{filepath.Dir(prebuilt.Path(t, "kubectl-ebbtide")), filepath.Dir(cluster.KubectlPath(t)), os.Getenv("PATH")}
	return strings.Join(dirs, string(os.PathListSeparator))
}
