package excerpt_test

import (
	"testing"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

func TestNames(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := excerpt.Names(names, 2); got != want {
			t.Errorf("%v: %q, want %q", names, got, want)
		}
	}
}
