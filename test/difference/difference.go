// Package difference reports what a test wants and does not get.
package difference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// None fails a test if what it wants differs from what it gets.
func None(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
