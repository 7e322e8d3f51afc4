// Package excerpt shows the beginning of what others have written, which may be as
// long as an object bears.
package excerpt

import "strings"

// more stands for what is left out.
const more = "…"

// Of returns a text of no more than so many bytes, with an ellipsis at its end if
// something is left out. No character is cut in two.
func Of(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:max(bytes-len(more), 0)], "") + more
}
