package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// collector has the compiler collect garbage less often than it does by default, which takes an
// eighth off the processor time of a build, and more often once a process has 2 GiB. The
// environment of the caller overrides it.
var collector = []string{"GOGC=400", "GOMEMLIMIT=2GiB"}

// goTool runs the go command in dir and returns its standard output. The
// environment is the caller's, except for what would tie the build to the
// module or the workspace around it.
func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return runGo(ctx, dir, func(string) bool { return false }, args...)
}

// runGo is goTool that passes each line of standard error to a function while it runs. Expected
// lines are no part of an error.
func runGo(ctx context.Context, dir string, expected func(line string) bool, args ...string) ([]byte, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return nil, errors.New("the go command is not in PATH; Go 1.26 or later is needed to build the control plane: https://go.dev/dl")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(collector, os.Environ())
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=", "GOARCH=")
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, killSignal) }
	cmd.WaitDelay = 10 * time.Second
	var stdout bytes.Buffer
	stderr := &lines{expected: expected}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, lastLines(stderr.text(), 20))
	}
	return stdout.Bytes(), nil
}

// lines keeps what is written to it, except for lines that were expected.
type lines struct {
	expected func(line string) bool
	kept     strings.Builder
	rest     []byte // the line that is not complete yet
}

func (l *lines) Write(data []byte) (int, error) {
	l.rest = append(l.rest, data...)
	for {
		line, rest, complete := bytes.Cut(l.rest, []byte("\n"))
		if !complete {
			return len(data), nil
		}
		if !l.expected(string(line)) {
			l.kept.Write(line)
			l.kept.WriteByte('\n')
		}
		l.rest = rest
	}
}

func (l *lines) text() string { return l.kept.String() + string(l.rest) }

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
