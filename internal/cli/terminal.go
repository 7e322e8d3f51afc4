package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"ebbtide.dev/ebbtide/internal/core/view"
)

// colour is an escape sequence.
type colour string

const (
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	bold   colour = "\x1b[1m"
	plain  colour = "\x1b[0m"
)

// terminal is a terminal that is written to; the zero value is a file or a pipe.
type terminal struct {
	file *os.File
	// coloured is false if TERM is dumb or NO_COLOR is set.
	coloured bool
}

// terminalOf returns the terminal that out is.
func terminalOf(out io.Writer) terminal {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return terminal{}
	}
	return terminal{file, os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// isLive reports whether the screen can be redrawn.
func (t terminal) isLive() bool { return t.file != nil && os.Getenv("TERM") != "dumb" }

// paintState returns a text in the colour of a state.
func (t terminal) paintState(state view.State, text string) string {
	switch state {
	case view.StateBlocked, view.StateInvalid:
		return t.paint(red, text)
	case view.StateDrained, view.StateReturned, view.StateComplete:
		return t.paint(green, text)
	}
	return text
}

// paint returns a text in a colour, if the terminal has colours.
func (t terminal) paint(c colour, text string) string {
	if !t.coloured || text == "" {
		return text
	}
	return string(c) + text + string(plain)
}
