package version

import (
	"runtime"
	"strings"
	"testing"
)

func TestWhereAVersionComesFrom(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ linked, module, want string }{
		"a release":                {"0.2.0", "(devel)", "0.2.0"},
		"go install":               {"", "v0.2.0", "0.2.0"},
		"go install of a commit":   {"", "v0.2.1-0.20260801120000-0123456789ab", "0.2.1-0.20260801120000-0123456789ab"},
		"a checkout":               {"", "(devel)", "devel"},
		"nothing is known":         {"", "", "devel"},
		"a release is what counts": {"0.2.0", "v0.1.0", "0.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := choose(test.linked, test.module); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if line, end := Line("ebbtide"), runtime.GOOS+"/"+runtime.GOARCH+" "+runtime.Version(); !strings.HasPrefix(line, "ebbtide ") || !strings.HasSuffix(line, end) {
		t.Errorf("%q, want the program, its version and %q", line, end)
	}
}
