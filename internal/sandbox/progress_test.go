package sandbox

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestABuildSaysHowFarItIs(t *testing.T) {
	p := &progress{start: time.Now(), mains: []string{"k8s.io/kubernetes/cmd/kube-apiserver"}}
	// Seconds depend on the machine.
	seconds := regexp.MustCompile(`[0-9]+s`)
	var said []string
	say := func(lines ...string) {
		for _, line := range lines {
			if !p.expects(line) {
				said = append(said, "not expected: "+line)
			}
		}
		said = append(said, seconds.ReplaceAllString(p.String(), "0s"))
	}
	say()
	say("go: downloading k8s.io/api v0.37.1", "go: downloading k8s.io/klog/v2 v2.140.0")
	p.missing = map[string]bool{"k8s.io/klog": true, "k8s.io/api": true, "k8s.io/apimachinery": true}
	say()
	say("k8s.io/klog", "k8s.io/api")
	say("k8s.io/apimachinery", "k8s.io/kubernetes/cmd/kube-apiserver")
	say("k8s.io/api/types.go:1: syntax error")
	want := []string{
		"downloading modules, 0 so far, 0s",
		"downloading modules, 2 so far, 0s",
		"3 packages to compile",
		"compiling package 2 of 3, 0s",
		"everything is compiled, linking, 0s",
		"not expected: k8s.io/api/types.go:1: syntax error",
		"everything is compiled, linking, 0s",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
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
