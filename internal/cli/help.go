package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// columns is how many every terminal has.
const columns = 80

// usage prints what cobra prints by default, with flags that fit a terminal. A template would be
// shorter. But a program that executes one keeps all methods of all types, which are 23 MB here.
func usage(cmd *cobra.Command) error {
	to := cmd.OutOrStderr()
	defer cmd.SetOut(to)
	var printed strings.Builder
	cmd.SetOut(&printed)
	if err := new(cobra.Command).UsageFunc()(cmd); err != nil {
		return err
	}
	text := printed.String()
	for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
		trim := func(usages string) string { return strings.TrimRight(usages, " \n") }
		text = strings.Replace(text, trim(flags.FlagUsages()), trim(flags.FlagUsagesWrapped(columns)), 1)
	}
	_, err := io.WriteString(to, text)
	return err
}

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
