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
