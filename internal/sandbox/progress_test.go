package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestABuildCountsPackagesAndKeepsErrors(t *testing.T) {
	p := &progress{}
	for line, want := range map[string]bool{
		"go: downloading k8s.io/api v0.37.1": true, "k8s.io/klog": true, "k8s.io/api": true,
		"# k8s.io/api": false, "k8s.io/api/types.go:1: syntax error": false,
	} {
		if p.expects(line) != want {
			t.Errorf("%q is expected: %t, want %t", line, !want, want)
		}
	}
	if got := p.packages.Load(); got != 2 {
		t.Errorf("%d packages, want 2", got)
	}
}

func TestLinesAreSeenWhole(t *testing.T) {
	var seen []string
	l := &lines{expected: func(line string) bool {
		seen = append(seen, line)
		return strings.HasPrefix(line, "k8s.io/")
	}}
	for _, part := range []string{"k8s.io/a", "pi\nx.go:1: bro", "ken\nk8s.io/klog\nthe ", "end"} {
		if n, err := l.Write([]byte(part)); err != nil || n != len(part) {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if diff := cmp.Diff([]string{"k8s.io/api", "x.go:1: broken", "k8s.io/klog"}, seen); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
	if got, want := l.text(), "x.go:1: broken\nthe end"; got != want {
		t.Errorf("kept is %q, want %q", got, want)
	}
}
