package main

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/golden"
)

// docs/reference/flags.md has the flags of the manager; make generate writes it.
func TestReferencePageOfFlags(t *testing.T) {
	set := flag.NewFlagSet("ebbtide", flag.ContinueOnError)
	if _, err := parseFlags(set, nil); err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("<!-- Made by TestReferencePageOfFlags; make generate writes it. -->\n\n# Flags of the manager\n\n" +
		"Set them with the chart value `extraArgs`. Most have a [chart value](values.md) of their own.\n\n| flag | default | meaning |\n|---|---|---|\n")
	set.VisitAll(func(f *flag.Flag) {
		fmt.Fprintf(&page, "| `--%s` | %s | %s |\n", f.Name, f.DefValue, strings.ReplaceAll(f.Usage, "|", `\|`))
	})
	golden.Equal(t, "../../../docs/reference/flags.md", page.String())
}
