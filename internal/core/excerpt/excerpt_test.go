package excerpt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text  string
		bytes int
		want  string
	}{
		"nothing":                       {"", 10, ""},
		"what fits":                     {"0123456789", 10, "0123456789"},
		"what does not":                 {"0123456789x", 10, "0123456…"},
		"a character is not cut in two": {"012345ääää", 10, "012345…"},
		"less than an ellipsis":         {"0123", 2, "…"},
	} {
		if got := excerpt.Of(test.text, test.bytes); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	long := excerpt.Of(strings.Repeat("世", 1<<20), 1000)
	if len(long) > 1000 || !utf8.ValidString(long) {
		t.Errorf("%d bytes are left, valid: %t", len(long), utf8.ValidString(long))
	}
}

func TestLine(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string
	}{
		"plain":                   {"moving shards", "moving shards"},
		"an escape sequence":      {"a\x1b[2J\x1b]0;owned\x07b", "a [2J ]0;owned b"},
		"lines":                   {"one\ntwo\r\nthree", "one two three"},
		"a text from the right":   {"pod\u202egpj.exe", "pod gpj.exe"},
		"bytes that are no text":  {"a\xff\xfeb", "ab"},
		"too long":                {strings.Repeat("x", 1<<20), strings.Repeat("x", 17) + "…"},
		"blanks before the words": {strings.Repeat(" ", 30) + "late", "late"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Line(tt.text, 20); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
