package demo

import (
	"fmt"
	"io"
	"time"
)

// say prints one line of a timeline.
type say func(at time.Duration, verb, text string)

// colours of the verbs that matter most.
var colours = map[string]string{
	"drained": "\x1b[32m",
	"back":    "\x1b[32m",
	"hook":    "\x1b[32m",
	"waits":   "\x1b[33m",
}

// printer prints lines of a timeline: seconds, verb, text.
func printer(out io.Writer, colour bool) say {
	return func(at time.Duration, verb, text string) {
		padded := fmt.Sprintf("%-9s", verb)
		if code, ok := colours[verb]; ok && colour {
			padded = code + padded + "\x1b[0m"
		}
		fmt.Fprintf(out, "%6.1fs  %s %s\n", at.Seconds(), padded, text)
	}
}
