package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// maxNear is how many names are suggested.
const maxNear = 3

// near returns up to three of these names, which somebody may have meant who wrote this one. Those
// with the fewest characters that differ come alone.
func near(written string, names []string) []string {
	// No object has such a name.
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
