//go:build linux

package main

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/golden"
)

// docs/reference/agent-flags.md has the flags of the agent; make generate writes it.
func TestReferencePageOfFlags(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	set := flag.NewFlagSet("ebbtide-agent", flag.ContinueOnError)
	if _, err := parseFlags(set, []string{"--node-name=node-1"}); err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("<!-- Made by TestReferencePageOfFlags; make generate writes it. -->\n\n# Flags of the agent\n\n" +
		"Set them with the chart value `agent.extraArgs`, or in the unit of a [host service](../host-agent.md).\n\n| flag | default | meaning |\n|---|---|---|\n")
	set.VisitAll(func(f *flag.Flag) {
		fmt.Fprintf(&page, "| `--%s` | %s | %s |\n", f.Name, f.DefValue, strings.ReplaceAll(f.Usage, "|", `\|`))
	})
	golden.Equal(t, "../../../docs/reference/agent-flags.md", page.String())
}
