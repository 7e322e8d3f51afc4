package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// columns is how many every terminal has.
const columns = 80

// fit has the help of a command and of those below it fit a terminal.
func fit(cmd *cobra.Command) {
	cmd.Long = reflow(cmd.Long)
	for _, sub := range cmd.Commands() {
		fit(sub)
	}
}

// reflow breaks the lines of paragraphs anew. Lines that are set in stay as they are.
func reflow(text string) string {
	var lines []string
	open := false
	for line := range strings.SplitSeq(text, "\n") {
		if open = open && line != "" && !strings.HasPrefix(line, " "); !open {
			lines = append(lines, line)
			open = line != "" && !strings.HasPrefix(line, " ")
			line = ""
		}
		// What is too long at the end of a paragraph goes over into the next line.
		words := strings.Fields(lines[len(lines)-1] + " " + line)
		if !open {
			continue
		}
		lines = lines[:len(lines)-1]
		lines = append(lines, filled(words)...)
	}
	return strings.Join(lines, "\n")
}

// filled are lines of words, as full as they can be.
func filled(words []string) (lines []string) {
	for _, word := range words {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= columns {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
