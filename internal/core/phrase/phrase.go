// Package phrase puts numbers, lists and times into words, the same in all messages.
package phrase

import (
	"fmt"
	"strings"
	"time"
)

// Count returns a number with its noun: "1 pod", "2 pods". An irregular plural is given.
func Count[N int | int32](n N, one string, several ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(several) > 0:
		return fmt.Sprintf("%d %s", n, several[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Some returns at most so many names and the number of others: "a, b and 3 more".
func Some(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// And joins names: "a, b and c".
func And(names []string) string { return join(names, "and") }

// Or joins names: "a, b or c".
func Or(names []string) string { return join(names, "or") }

func join(names []string, last string) string {
	end := len(names) - 1
	if end < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:end], ", ") + " " + last + " " + names[end]
}

// Time returns a time in UTC: "2026-03-01T12:00:00Z".
func Time(at time.Time) string { return at.UTC().Format(time.RFC3339) }
