package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// result is how many tests of a package were run, without subtests.
type result struct{ passed, failed int }

func (r result) all() int { return r.passed + r.failed }

func (r result) String() string {
	if r.all() == 0 {
		return notRun
	}
	return fmt.Sprintf("%d of %d", r.passed, r.all())
}

// goTest runs tests on a release that has been built. What failed is printed.
func goTest(ctx context.Context, version string, args ...string) (result, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-timeout=30m"}, args...)...)
	cmd.Env = append(os.Environ(), "K8S_VERSION="+version)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	r, readErr := read(stdout, os.Stdout)
	if err := errors.Join(readErr, cmd.Wait()); err != nil {
		return r, fmt.Errorf("go test %s: %s passed: %w", args[len(args)-1], r, err)
	}
	return r, nil
}

// event is what go test -json prints.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// read counts what was run, tells of each test that ends, and shows what the tests said
// that failed.
func read(from io.Reader, to io.Writer) (r result, err error) {
	said := map[string]*strings.Builder{}
	for events := json.NewDecoder(from); ; {
		var e event
		if err := events.Decode(&e); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return r, fmt.Errorf("read the output of go test: %w", err)
		}
		name, _, _ := strings.Cut(e.Test, "/")
		if said[name] == nil {
			said[name] = &strings.Builder{}
		}
		said[name].WriteString(e.Output)
		if name != e.Test {
			continue
		}
		r.count(e)
		switch {
		case e.Action == "fail":
			fmt.Fprintf(to, "%s", said[name])
		case e.Action == "pass" && name != "":
			fmt.Fprintf(to, "  %s %.1fs\n", name, e.Elapsed)
		}
		if e.Action == "pass" || e.Action == "fail" {
			delete(said, name)
		}
	}
}

// count takes the end of a test to account; that of the package has no name.
func (r *result) count(e event) {
	if e.Test == "" {
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail", "skip":
		r.failed++
	}
}
