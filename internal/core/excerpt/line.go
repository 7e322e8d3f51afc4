package excerpt

import (
	"strings"
	"unicode"
)

// Line is Of for one line, without line breaks, escape sequences and direction marks.
func Line(text string, bytes int) string {
	// Text that is not shown is not processed.
	words := strings.FieldsFunc(strings.ToValidUTF8(text[:min(len(text), 4*bytes)], ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
	return Of(strings.Join(words, " "), bytes)
}
