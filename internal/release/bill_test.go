package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

// A module of which nobody can tell whether it is the same is in no bill.
func TestAModuleWithoutAChecksumIsRefused(t *testing.T) {
	t.Parallel()
	for _, sum := range []string{"", "h1:", "h1:c2hvcnQ=", "h1:not base64"} {
		if hashes, err := sumOf(&debug.Module{Path: "example.com/m", Sum: sum}); err == nil || !strings.Contains(err.Error(), "module example.com/m has no checksum") {
			t.Errorf("sum %q: %v, %v", sum, hashes, err)
		}
	}
}
