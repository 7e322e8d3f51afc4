package phrase_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/core/phrase"
)

func TestPhrases(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 pods":               phrase.Count(0, "pod"),
		"1 pod":                phrase.Count(1, "pod"),
		"2 pods":               phrase.Count(int32(2), "pod"),
		"1 pod leaves":         phrase.Count(1, "pod leaves", "pods leave"),
		"3 pods leave":         phrase.Count(3, "pod leaves", "pods leave"),
		"a":                    phrase.Some([]string{"a"}, 2),
		"a, b":                 phrase.Some([]string{"a", "b"}, 2),
		"a, b and 2 more":      phrase.Some([]string{"a", "b", "c", "d"}, 2),
		"x":                    phrase.And([]string{"x"}),
		"x and y":              phrase.And([]string{"x", "y"}),
		"x, y or z":            phrase.Or([]string{"x", "y", "z"}),
		"2026-03-01T11:00:00Z": phrase.Time(time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := phrase.Some(nil, 2) + phrase.And(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
