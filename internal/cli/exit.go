package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes of the plugin. Whoever is interrupted gets what a shell says of any program
// that a signal has ended.
const (
	codeDone        = 0
	codeError       = 1
	codeNotDone     = 2
	codeNoManager   = 3
	codeNoRight     = 4
	codeInterrupted = 130
)

// NotDone is the error of a verb that has done what it could and has not reached what was
// asked for: pods are blocked, or --timeout is over. The plugin ends with exit code 2, and
// with 3 if no manager acts.
type NotDone struct {
	// Text says what is not done, and what to do about it. It is printed as it is, without
	// the word "error"; empty prints nothing because all has been said.
	Text string
	// NoManager is true if no manager acts.
	NoManager bool
}

// Error implements error.
func (n NotDone) Error() string { return n.Text }

// notDone is a NotDone whose text is formatted.
func notDone(format string, args ...any) error { return NotDone{Text: fmt.Sprintf(format, args...)} }

// coded is an error with an exit code of its own.
type coded struct {
	error
	code int
}

// Unwrap returns the error within.
func (c coded) Unwrap() error { return c.error }

// detached is the error of a verb that was interrupted after it had asked for what goes on
// without it, and what it has to say about that; empty if that has been said. The plugin
// ends as if it had been interrupted otherwise.
type detached struct{ text string }

// Error implements error.
func (d detached) Error() string { return d.text }

// report tells standard error how a run has ended, and returns its exit code.
func report(to io.Writer, err error) int {
	var left NotDone
	var gone detached
	code := coded{code: codeError}
	switch {
	case err == nil:
		return codeDone
	case errors.Is(err, syscall.EPIPE):
		// The reader has gone, as head does with what it wanted.
		return codeDone
	case errors.As(err, &left):
		if left.Text != "" {
			fmt.Fprintln(to, left.Text)
		}
		if left.NoManager {
			return codeNoManager
		}
		return codeNotDone
	case errors.As(err, &gone):
		if gone.text != "" {
			fmt.Fprintln(to, gone.text)
		}
		return codeInterrupted
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(to, "interrupted")
		return codeInterrupted
	}
	fmt.Fprintln(to, "error:", err)
	if !errors.As(err, &code) && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		return codeNoRight
	}
	return code.code
}
