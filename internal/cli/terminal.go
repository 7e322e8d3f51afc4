package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"ebbtide.dev/ebbtide/internal/core/view"
)

// colour is how text is set off on a terminal.
type colour string

const (
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	bold   colour = "\x1b[1m"
	plain  colour = "\x1b[0m"
)

// terminal is the terminal that a person looks at; the zero value is none, such as a file
// or a pipe.
type terminal struct {
	file *os.File
	// coloured is true unless the terminal or the person (NO_COLOR) wants none.
	coloured bool
}

// terminalOf returns the terminal that is written to.
func terminalOf(out io.Writer) terminal {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return terminal{}
	}
	return terminal{file, os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// live is true if what has been printed can be printed over.
func (t terminal) live() bool { return t.file != nil && os.Getenv("TERM") != "dumb" }

// paintState has a text in the colour of a state.
func (t terminal) paintState(state view.State, text string) string {
	switch state {
	case view.StateBlocked, view.StateInvalid:
		return t.paint(red, text)
	case view.StateDrained, view.StateReturned, view.StateComplete:
		return t.paint(green, text)
	}
	return text
}

// paint sets text off, where there is colour.
func (t terminal) paint(c colour, text string) string {
	if !t.coloured || text == "" {
		return text
	}
	return string(c) + text + string(plain)
}
