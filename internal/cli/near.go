package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// maxNear bounds the suggested names.
const maxNear = 3

// near returns the names with the smallest edit distance from the written one, at most three.
func near(written string, names []string) []string {
	// Such a name is invalid.
	if written == "" || len(written) > 253 {
		return nil
	}
	all := &cobra.Command{}
	for _, name := range names {
		if strings.EqualFold(name, written) {
			return []string{name}
		}
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for apart := range max(2, min(len(written)/3, 4)) {
		all.SuggestionsMinimumDistance = apart + 1
		if found := all.SuggestionsFor(written); len(found) > 0 {
			slices.Sort(found)
			return found[:min(len(found), maxNear)]
		}
	}
	return nil
}
