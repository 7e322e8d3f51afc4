package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes of the plugin. 130 is what a shell reports for a program that a signal ended.
const (
	codeDone        = 0
	codeError       = 1
	codeNotDone     = 2
	codeNoManager   = 3
	codeNoRight     = 4
	codeInterrupted = 130
)

// ended is the error of a verb that has done what it could. Its text is printed without the word
// "error", or not at all if it is empty.
type ended struct {
	code int
	text string
}

// Error implements error.
func (e ended) Error() string { return e.text }

// notDone is the error of a goal that was not reached: pods are blocked, or --timeout is over.
func notDone(format string, args ...any) error {
	return ended{codeNotDone, fmt.Sprintf(format, args...)}
}

// detached is the error of an interrupted verb whose request continues without it.
func detached(format string, args ...any) error {
	return ended{codeInterrupted, fmt.Sprintf(format, args...)}
}

// codeOfNotDone returns the code of a goal that was not reached, or that of no manager if none acts.
func codeOfNotDone(away bool) int {
	if away {
		return codeNoManager
	}
	return codeNotDone
}

// failed is an error whose text and exit code are final: inWords leaves it alone.
type failed struct {
	error
	code int
}

// Unwrap returns the error within.
func (f failed) Unwrap() error { return f.error }

// final marks an error whose text says all that there is to say.
func final(err error) error { return failed{err, codeOf(err)} }

// codeOf returns the exit code of an error by its cause.
func codeOf(err error) int {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return codeNoRight
	}
	return codeError
}

// report prints how a run has ended, and returns its exit code.
func report(to io.Writer, err error) int {
	var end ended
	var failure failed
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		// A reader such as head leaves when it has what it wants.
		return codeDone
	case errors.As(err, &end):
		if end.text != "" {
			fmt.Fprintln(to, end.text)
		}
		return end.code
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(to, "interrupted")
		return codeInterrupted
	}
	fmt.Fprintln(to, "error:", err)
	if errors.As(err, &failure) {
		return failure.code
	}
	return codeOf(err)
}
