// Package excerpt shows the beginning of what others have written, which may be as
// long as an object bears.
package excerpt

import "strings"

const more = "…"

// Of returns at most so many bytes of a text, cut between characters with an ellipsis.
func Of(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:max(bytes-len(more), 0)], "") + more
}
