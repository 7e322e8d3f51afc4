package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// advice is what to use in place of a verb that people try.
type advice struct {
	tried []string
	use   string
}

var advices = []advice{
	{[]string{"cancel", "abort", "stop", "end", "finish", "undo", "delete"}, "complete NAME ends a maintenance and gives its nodes back"},
	{[]string{"pause", "suspend", "hold"}, "a drain cannot be paused: complete NAME ends it and gives its nodes back, and pods that have left stay where they are"},
	{[]string{"start", "resume", "continue"}, "drain nodemaintenance/NAME starts a maintenance that is planned, or follows one that drains"},
	{[]string{"get", "list", "ls", "show", "describe"}, "status shows all maintenances, and status NAME one of them"},
	{[]string{"explain", "events", "logs"}, "why NODE, or why pod/NAME, says what holds it up"},
	{[]string{"sandbox", "demo"}, "the sandbox is a program of its own: make sandbox, or make demo, in a checkout of Ebbtide"},
}

// unknownVerb is the first word if it is no verb; empty if it is one.
func unknownVerb(root *cobra.Command, args []string) string {
	found, rest, err := root.Find(args)
	if err != nil || found != root || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return ""
	}
	// cobra adds these when it runs.
	if word := rest[0]; word != "help" && word != "completion" && !strings.HasPrefix(word, "__complete") {
		return word
	}
	return ""
}

// noVerb says that there is no such verb, and what to use.
func noVerb(root *cobra.Command, word string) error {
	use := "--help lists them"
	var verbs []string
	for _, verb := range root.Commands() {
		verbs = append(verbs, verb.Name())
	}
	if meant := near(word, verbs); len(meant) > 0 {
		use = "do you mean " + phrase.Or(meant) + "?"
	}
	for _, a := range advices {
		if slices.Contains(a.tried, strings.ToLower(word)) {
			use = a.use
		}
	}
	return fmt.Errorf("there is no verb %q: %s", excerpt.Line(word, maxSaid), use)
}
