// Package tier keeps tests of the second tier out of the way of everybody who did not ask for
// them. Their names begin with TestLong, which make test-all asks for.
package tier

import (
	"flag"
	"strings"
	"testing"
)

// Long skips a test of the second tier unless -run names TestLong, so that go test without
// any flags is as fast as the first tier.
func Long(t testing.TB) {
	t.Helper()
	if run := flag.Lookup("test.run"); run == nil || !strings.Contains(run.Value.String(), "TestLong") {
		t.Skip("it is of the second tier: ask for it by name, as in go test -run '^TestLong'")
	}
}
