package demo

import (
	"fmt"
	"io"
	"time"
)

// say prints one line of a timeline.
type say func(at time.Duration, verb, text string)

// printer prints lines of a timeline: seconds, verb, text.
func printer(out io.Writer) say {
	return func(at time.Duration, verb, text string) {
		fmt.Fprintf(out, "%6.1fs  %-9s %s\n", at.Seconds(), verb, text)
	}
}
