// Package logformat is the flag by which our programs choose how they write their log.
package logformat

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
)

// Format is text, the zero value, or json.
type Format string

// Flag adds --log-format to a set.
func (f *Format) Flag(set *flag.FlagSet) {
	set.Func("log-format", "how the log is written: text (default) or json, one object a line", func(value string) error {
		if value != "text" && value != "json" {
			return fmt.Errorf("%q is neither text nor json", value)
		}
		*f = Format(value)
		return nil
	})
}

// Handler writes in this format what is at least of a level.
func (f Format) Handler(w io.Writer, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if f == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}
