package excerpt

import (
	"strings"
	"unicode"
)

// Line is Of a text in one line of what can be seen: neither line breaks nor escape
// sequences of terminals, nor marks that turn the direction of a text.
func Line(text string, bytes int) string {
	// What nobody is shown is not looked at either.
	words := strings.FieldsFunc(strings.ToValidUTF8(text[:min(len(text), 4*bytes)], ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
	return Of(strings.Join(words, " "), bytes)
}
