package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/patience"
)

// keep keeps the control plane of the first test that fails up, with all that the test has made.
var keep = flag.Bool("keep", false, "keep the control plane of a test that fails up until Ctrl-C")

// undo has a test undo something at its end, unless it failed and is to be looked at.
func (c *Cluster) undo(t testing.TB, what func(ctx context.Context)) {
	t.Helper()
	t.Cleanup(func() {
		if *keep && t.Failed() {
			c.hold(t)
		}
		ctx, cancel := patience.Context(t)
		defer cancel()
		what(ctx)
	})
}

// hold waits for a signal. It says how to look at the control plane, to the terminal, since the
// go command may show what tests print only at their end.
func (c *Cluster) hold(t testing.TB) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "%s failed, and what it made is kept until Ctrl-C. Look at it with\n  export KUBECONFIG=%s\nand at the logs in %s\n",
		t.Name(), c.Kubeconfig, filepath.Dir(c.Kubeconfig))
	<-interrupted()
}

// interrupted is closed by Ctrl-C, after which no test is held.
var interrupted = sync.OnceValue(func() <-chan struct{} {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx.Done()
})

// logged is a process with a log.
type logged interface{ LogFile() string }

// lastWords is how many lines of a log a failure shows.
const lastWords = 3

// explain shows, if the test fails, what a process has logged last about objects of this test,
// and keeps its whole log.
func (c *Cluster) explain(t testing.TB, name string, find func() logged) {
	t.Helper()
	t.Cleanup(func() {
		if process := find(); t.Failed() && process != nil {
			t.Log(c.lastWords(t, name, process.LogFile()))
		}
	})
}

func (c *Cluster) lastWords(t testing.TB, name, log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return fmt.Sprintf("%s: %v", name, err)
	}
	about, lines := "about "+c.prefix, linesWith(string(data), c.prefix)
	if len(lines) == 0 {
		about, lines = "(nothing about "+c.prefix+")", linesWith(string(data), "")
	}
	kept, err := keepLog(t, log, data)
	if err != nil {
		kept = err.Error()
	}
	return fmt.Sprintf("%s logged last %s:\n%s\nwhole log: %s", name, about, strings.Join(lines, "\n"), kept)
}

// linesWith returns the last lines of a log that contain some words.
func linesWith(log, words string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, words) {
			lines = append(lines, cut(strings.TrimSpace(line)))
		}
	}
	return lines[max(0, len(lines)-lastWords):]
}

// keepLog copies a log to where it outlives the control plane.
func keepLog(t testing.TB, log string, data []byte) (path string, err error) {
	dir, err := sandbox.ProgramDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(filepath.Dir(dir), "failed", slug(t.Name()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(log))
	return path, os.WriteFile(path, data, 0o600)
}
