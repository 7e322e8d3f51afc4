package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/test/golden"
)

// docs/reference/cli.md has the help of every verb; make generate writes it.
func TestReferencePageOfVerbs(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("<!-- Made by TestReferencePageOfVerbs; make generate writes it. -->\n\n# Verbs of the plugin\n")
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[2:]
		if c.Name() == "help" || c.Name() == "completion" || c.Hidden {
			return
		}
		if c.Runnable() {
			page.WriteString("\n## " + strings.Join(append([]string{"kubectl ebbtide"}, path...), " ") + "\n\n```\n" + run(t.Context(), append(path, "--help")...).Out + "```\n")
		}
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(newRoot(genericiooptions.IOStreams{}))
	golden.Equal(t, "../../../docs/reference/cli.md", page.String())
}
